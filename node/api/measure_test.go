package api_test

import (
	"math"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/node/api"
)

func TestMeasurementBelievesWhatCanBe(t *testing.T) {
	ms := func(n ...float64) (out []codec.Duration) {
		for _, v := range n {
			out = append(out, codec.Duration(v*float64(time.Millisecond)))
		}
		return out
	}
	for name, c := range map[string]struct {
		sent        int
		answered    []codec.Duration
		n           int
		min, median codec.Duration
	}{
		"none":         {5, nil, 0, 0, 0},
		"one":          {5, ms(3), 1, ms(3)[0], ms(3)[0]},
		"even":         {4, ms(9, 1, 5, 3), 4, ms(1)[0], ms(3)[0]},
		"odd":          {5, ms(9, 1, 5), 3, ms(1)[0], ms(5)[0]},
		"too many":     {2, ms(2, 3, 1), 2, ms(2)[0], ms(2)[0]},
		"absurd":       {5, []codec.Duration{-1, 0, math.MaxInt64, api.MaxRTT + 1, math.MinInt64}, 0, 0, 0},
		"the longest":  {1, []codec.Duration{api.MaxRTT}, 1, api.MaxRTT, api.MaxRTT},
		"nothing sent": {0, ms(1), 0, 0, 0},
	} {
		m := api.NewMeasurement(c.sent, c.answered)
		if m.Sent != c.sent || len(m.Answered) != c.n || m.Answered == nil || m.Min != c.min || m.Median != c.median {
			t.Errorf("%s: got %+v", name, m)
		}
	}
}

func TestTrafficFindsACounter(t *testing.T) {
	traffic := api.Traffic{{Group: "a", Name: "x", Value: 1}, {Group: "b", Name: "x", Value: 2}}
	if traffic.Of("b", "x") != 2 || traffic.Of("b", "y") != 0 || api.Traffic(nil).Of("a", "x") != 0 {
		t.Error("a counter has another's value")
	}
}
