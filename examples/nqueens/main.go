// Nqueens counts the ways to put N queens on a board of N by N so that none
// attacks another, in one of two ways.
//
//	nqueens N              count the part of rank ZORILLA_RANK of ZORILLA_SIZE
//	nqueens -sum part-*    add the parts and print the total
//	nqueens -steal N       count by divide and conquer, with the other ranks of the job
//
// The first needs no communication: every rank takes its share of the placements of
// the first two rows, counts what follows from them, and writes its part to a file.
// Without these variables it counts everything. The same N, rank and size give
// the same bytes in every run.
//
// The second is for malleable jobs: ranks without work steal some of others, and any
// of them may come, be lost, and come again, rank 0, too. Rank 0 prints the sum.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"zorilla/examples/peers"
)

const maxN = 24 // 227,514,171,973,736 solutions: more is for another century

func main() {
	if err := run(os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "nqueens:", err)
		if errors.Is(err, errUsage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: nqueens N | nqueens -sum FILE [FILE]… | nqueens -steal N")

func run(args []string, getenv func(string) string, stdout io.Writer) error {
	if len(args) > 1 && args[0] == "-sum" {
		return printSum(args[1:], stdout)
	}
	stealing := len(args) == 2 && args[0] == "-steal"
	if stealing {
		args = args[1:]
	}
	if len(args) != 1 {
		return errUsage
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 || n > maxN {
		return fmt.Errorf("%q is no N from 1 to %d (%w)", args[0], maxN, errUsage)
	}
	if stealing {
		p, err := peers.Here(getenv)
		if err != nil {
			return err
		}
		return steal(n, p, stdout)
	}
	rank, size, err := place(getenv)
	if err != nil {
		return err
	}
	p := part{n: n, rank: rank, size: size, solutions: count(n, rank, size)}
	if err := os.WriteFile(fmt.Sprintf("part-%d.txt", rank), []byte(p.String()), 0o644); err != nil {
		return err
	}
	_, err = fmt.Fprint(stdout, p)
	return err
}

// place returns which part of the work is ours.
func place(getenv func(string) string) (rank, size int, err error) {
	r, s := getenv("ZORILLA_RANK"), getenv("ZORILLA_SIZE")
	if r == "" && s == "" {
		return 0, 1, nil
	}
	rank, errRank := strconv.Atoi(r)
	size, errSize := strconv.Atoi(s)
	if errRank != nil || errSize != nil || rank < 0 || rank >= size {
		return 0, 0, fmt.Errorf("ZORILLA_RANK is %q and ZORILLA_SIZE is %q: want a rank below the size", r, s)
	}
	return rank, size, nil
}

// count returns the solutions that begin with a placement of the first two
// rows whose number, modulo the size, is the rank.
func count(n, rank, size int) uint64 {
	var total uint64
	all := uint32(1)<<n - 1
	number := 0
	for first := uint32(1); first <= all; first <<= 1 {
		columns, left, right := first, first<<1, first>>1
		if n == 1 {
			if rank == 0 {
				total++
			}
			continue
		}
		for free := all &^ (columns | left | right); free != 0; free &= free - 1 {
			if number%size == rank {
				second := free & -free
				total += solve(all, columns|second, (left|second)<<1, (right|second)>>1)
			}
			number++
		}
	}
	return total
}

// solve counts the ways to fill the remaining rows. The bits are the columns
// of the next row that are attacked: straight, and along either diagonal.
func solve(all, columns, left, right uint32) uint64 {
	if columns == all {
		return 1
	}
	var total uint64
	for free := all &^ (columns | left | right); free != 0; free &= free - 1 {
		queen := free & -free
		total += solve(all, columns|queen, (left|queen)<<1, (right|queen)>>1)
	}
	return total
}
