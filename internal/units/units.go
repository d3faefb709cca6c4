// Package units writes quantities for people, everywhere alike.
package units

import (
	"fmt"
	"strings"
)

// Bytes writes a number of bytes in units of 1024, which are those of options
// such as --mem 2G: "512 B", "1.5 GiB".
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", max(n, 0))
	}
	v, unit := float64(n)/1024, 0
	for v >= 1023.5 && unit < 5 { // else it would be written as 1024
		v, unit = v/1024, unit+1
	}
	text := fmt.Sprintf("%.0f", v)
	if v < 99.95 {
		text = strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
	}
	return text + " " + "KMGTPE"[unit:unit+1] + "iB"
}
