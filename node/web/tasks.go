package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"zorilla/jobs"
)

const (
	mapCells    = 400 // of the picture of an array
	mapColumns  = 80
	maxTaskRows = 50 // failed tasks that are listed at once
)

// tasksView is how the tasks of an array stand, in little however many there
// are: outlines of the cells of each kind, and a page of those that have failed.
type tasksView struct {
	None   bool      `json:"none"`
	Sum    string    `json:"sum"`
	Waits  string    `json:"waits"`
	Partly string    `json:"partly"`
	Runs   string    `json:"runs"`
	Done   string    `json:"done"`
	Failed string    `json:"failed"`
	Rows   []taskRow `json:"rows"`
	First  string    `json:"first"` // links to other pages; "" = there is none
	Next   string    `json:"next"`
}

type taskRow struct {
	Key   string `json:"key"` // the task's number
	Href  string `json:"href"`
	Exit  string `json:"exit"`
	Tries string `json:"tries"`
	Node  string `json:"node"`
	Took  string `json:"took"`
}

// failedFrom reads from which place on a request wants failed tasks.
func failedFrom(r *http.Request) int {
	n, err := strconv.Atoi(r.URL.Query().Get("failed"))
	if err != nil || n < 0 || n > jobs.MaxTasks {
		return 0
	}
	return n
}

// tasks describes the tasks of an array.
func (s *views) tasks(ctx context.Context, st *jobs.Status, from int) tasksView {
	if st.Array == nil {
		return tasksView{None: true}
	}
	a := st.Array
	v := tasksView{Sum: fmt.Sprintf("%s of %s done, %s failed, %s running", count(int64(a.Done)), count(int64(a.Tasks)), count(int64(a.Failed)), count(int64(a.Running)))}
	page, err := s.service.Tasks(ctx, string(st.ID), jobs.TaskQuery{From: from, Limit: maxTaskRows, Failed: true, Cells: mapCells})
	if err != nil { // the origin is away: the rest is still of use
		return v
	}
	for letter, path := range map[rune]*string{jobs.CellWaits: &v.Waits, jobs.CellPartly: &v.Partly, jobs.CellRuns: &v.Runs, jobs.CellDone: &v.Done, jobs.CellFailed: &v.Failed} {
		*path = outline(page.Picture, byte(letter))
	}
	for _, t := range page.Tasks[:min(len(page.Tasks), maxTaskRows)] {
		id := strconv.Itoa(t.ID)
		v.Rows = append(v.Rows, taskRow{Key: id, Href: "?rank=" + id, Exit: strconv.Itoa(t.Code), Tries: strconv.Itoa(t.Tries),
			Node: label(t.Node.Short(), 5), Took: span(time.Duration(t.Took))})
	}
	if from > 0 {
		v.First = "?failed=0"
	}
	if page.Next > 0 {
		v.Next = "?failed=" + strconv.Itoa(page.Next)
	}
	return v
}

// outline draws the cells of one letter, those that follow each other in a row
// as one.
func outline(picture string, letter byte) string {
	var b strings.Builder
	picture = picture[:min(len(picture), mapCells)]
	for row := 0; row*mapColumns < len(picture); row++ {
		line := picture[row*mapColumns : min(len(picture), (row+1)*mapColumns)]
		for x := 0; x < len(line); x++ {
			if line[x] != letter {
				continue
			}
			first := x
			for x+1 < len(line) && line[x+1] == letter {
				x++
			}
			width := (x-first+1)*10 - 1
			fmt.Fprintf(&b, "M%d %dh%dv8h-%dz", first*10, row*10, width, width)
		}
	}
	return b.String()
}
