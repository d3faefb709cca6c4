package sanitize_test

import (
	"strings"
	"testing"

	"zorilla/internal/sanitize"
)

func TestNumbers(t *testing.T) {
	for want, list := range map[string][]int{
		"":                 nil,
		"4":                {4},
		"1, 2":             {1, 2},
		"1 to 3, 7, 8":     {1, 2, 3, 7, 8},
		"2, 4 to 6, 9, 11": {2, 4, 5, 6, 9, 11},
	} {
		if got := sanitize.Numbers(list); got != want {
			t.Errorf("%d: %q, want %q", list, got, want)
		}
	}
	var odd []int
	for i := range 1000 {
		odd = append(odd, 2*i+1)
	}
	if got := sanitize.Numbers(odd); strings.Count(got, ",") != 20 || !strings.HasSuffix(got, "39, ...") {
		t.Errorf("a thousand: %q", got)
	}
}
