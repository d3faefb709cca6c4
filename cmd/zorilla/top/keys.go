package top

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"zorilla/cmd/zorilla/columns"
)

// maxFilter bounds what is typed, in bytes.
const maxFilter = 60

// key takes a key by the name that bubbletea has for it, and what it types, if it does.
func (s *screen) key(name, typed string) want {
	s.note = ""
	switch {
	case name == "ctrl+c":
		return want{deed: quit}
	case name == "ctrl+z":
		return want{deed: suspend}
	case s.ask != "":
		return s.answer(name)
	case s.typing:
		s.typed(name, typed)
		return want{}
	case s.text != nil:
		return s.textKey(name)
	}
	return s.listKey(name)
}

// answer takes the answer whether to cancel a job: only y is yes.
func (s *screen) answer(name string) want {
	job := s.ask
	s.ask = ""
	if name != "y" && name != "Y" {
		s.note = "not cancelled"
		return want{}
	}
	return want{cancel, job}
}

// typed takes a key of the filter.
func (s *screen) typed(name, typed string) {
	l := &s.lists[s.tab]
	switch name {
	case "enter":
		s.typing = false
	case "esc":
		s.typing, l.filter = false, ""
	case "backspace":
		if _, size := utf8.DecodeLastRuneInString(l.filter); size > 0 {
			l.filter = l.filter[:len(l.filter)-size]
		} else {
			s.typing = false
		}
	case "ctrl+u":
		l.filter = ""
	default:
		for _, r := range typed {
			if unicode.IsPrint(r) && len(l.filter)+utf8.RuneLen(r) <= maxFilter {
				l.filter += string(r)
			}
		}
	}
	s.clamp()
}

// listKey takes a key while a list is seen.
func (s *screen) listKey(name string) want {
	rows, l := s.rows(s.tab), &s.lists[s.tab]
	switch name {
	case "q":
		return want{deed: quit}
	case "tab", "shift+tab", "left", "right":
		s.tab = (s.tab + 1) % tabs
	case "1", "2":
		s.tab = tab(name[0] - '1')
	case "/":
		s.typing = true
	case "esc":
		l.filter = ""
		s.clamp()
	case "r":
		return want{deed: refresh}
	case "a":
		s.all = !s.all
		s.note = "the last ten jobs that have ended"
		if s.all {
			s.note = "all jobs that have ended"
		}
		s.clamp()
	case "c", "l", "enter":
		return s.about(name)
	default:
		if by, ok := moves(name, s.listRows(), len(rows)); ok {
			s.choose(s.tab, rows, max(0, l.at+by))
		}
	}
	return want{}
}

// moves tells by how many rows a key moves, on a page of rows.
func moves(name string, page, all int) (by int, ok bool) {
	switch name {
	case "up", "k":
		return -1, true
	case "down", "j":
		return 1, true
	case "pgup", "ctrl+b":
		return -page, true
	case "pgdown", "ctrl+f", "space":
		return page, true
	case "home", "g":
		return -all, true
	case "end", "G":
		return all, true
	}
	return 0, false
}

// about does what a key says to what is selected.
func (s *screen) about(name string) want {
	r := s.selected()
	switch {
	case r == nil:
		return want{}
	case r.node != nil && name == "enter":
		s.text = &text{title: "node " + r.node.ID.Short(), whole: s.aboutNode(r.node)}
		s.clamp()
		return want{}
	case r.node != nil:
		s.note = "that is for jobs: tab shows them"
		return want{}
	case name == "c" && r.job.State.Final():
		s.note = "job " + r.job.ID.Short() + " has ended"
		return want{}
	case name == "c":
		s.ask = r.job.ID
		return want{}
	}
	s.text = &text{job: r.job.ID, title: strings.TrimSpace("job " + r.job.ID.Short() + "  " + columns.Clean(columns.Title(r.job.Name, r.job.Args))),
		log: name == "l", follow: name == "l"}
	if s.text.log {
		return want{showLog, r.job.ID}
	}
	return want{showStatus, r.job.ID}
}

// textKey takes a key while a text is seen.
func (s *screen) textKey(name string) want {
	t := s.text
	switch name {
	case "q", "esc", "left", "backspace":
		s.text = nil
		return want{deed: leave}
	case "l", "enter":
		if t.job != "" && (t.log != (name == "l") || t.log && t.err != nil) {
			s.text = &text{job: t.job, title: t.title, log: name == "l", follow: name == "l"}
			if s.text.log {
				return want{showLog, t.job}
			}
			return want{showStatus, t.job}
		}
	case "c":
		if st := s.job(t.job); st != nil && !st.State.Final() {
			s.ask = t.job
		}
	default:
		if by, ok := moves(name, s.textRows(), len(t.lines)); ok {
			t.move(by, s.textRows())
		}
	}
	return want{}
}
