package pages

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	const page = `# A page

    zorilla run -n 6 ./prog   # six workers
    sh -c 'echo "#1"'

Then '''zorilla status last''', or '''zorilla
ps --all''' of '''zorilla'''; '''zorilla ps''' is a name.
    not a block within text

~sh
    ./prog data.txt
~

    alpha$ zorilla node
    join   zorilla node --join zor1.x

    beta$  zorilla node --join zor1.x
| '''squeue''' | '''zorilla ps --queue \| cat''' |
`
	want := []Block{
		{3, []Command{{"", "zorilla run -n 6 ./prog"}, {"", `sh -c 'echo "#1"'`}}},
		{6, []Command{{"", "zorilla status last"}}},
		{6, []Command{{"", "zorilla ps --all"}}},
		{14, []Command{{"alpha", "zorilla node"}}},
		{17, []Command{{"beta", "zorilla node --join zor1.x"}}},
		{18, []Command{{"", "zorilla ps --queue | cat"}}},
	}
	if got := parse(strings.NewReplacer("'''", "`", "~", "```").Replace(page)); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if _, err := Read("testdata/nosuch.md"); err == nil {
		t.Error("a page that is not there was read")
	}
}
