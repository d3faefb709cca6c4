package main

import (
	"fmt"
	"io"
	"os"
)

// part is what one rank found.
type part struct {
	n, rank, size int
	solutions     uint64
}

const partFormat = "queens %d rank %d of %d: %d solutions\n"

func (p part) String() string {
	return fmt.Sprintf(partFormat, p.n, p.rank, p.size, p.solutions)
}

func readPart(file string) (part, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return part{}, err
	}
	var p part
	_, err = fmt.Sscanf(string(b), partFormat, &p.n, &p.rank, &p.size, &p.solutions)
	if err != nil || p.String() != string(b) || p.rank < 0 || p.rank >= p.size {
		return part{}, fmt.Errorf("%s: not a part written by nqueens", file)
	}
	return p, nil
}

// printSum prints the total of the parts, if they are all parts of one count.
func printSum(files []string, stdout io.Writer) error {
	var total uint64
	var first part
	seen := map[int]string{}
	for i, file := range files {
		p, err := readPart(file)
		if err != nil {
			return err
		}
		if i == 0 {
			first = p
		}
		if p.n != first.n || p.size != first.size {
			return fmt.Errorf("%s is of another count than %s", file, files[0])
		}
		if other, ok := seen[p.rank]; ok {
			return fmt.Errorf("%s and %s are both of rank %d", other, file, p.rank)
		}
		seen[p.rank] = file
		total += p.solutions
	}
	for rank := range first.size {
		if _, ok := seen[rank]; !ok {
			return fmt.Errorf("the part of rank %d is missing (%d of %d are here)", rank, len(seen), first.size)
		}
	}
	_, err := fmt.Fprintln(stdout, total)
	return err
}
