package main

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The problem: the temperature u inside a cube whose faces are kept at 0 and that is heated in
// a ball, -Δu = f in the unit cube, on a grid of n by n by n points.

// source is f at a point of the grid, numbered from 1.
func source(n, z, y, x int) float64 {
	h := 1 / float64(n+1)
	dz, dy, dx := h*float64(z)-0.4, h*float64(y)-0.3, h*float64(x)-0.6
	if dz*dz+dy*dy+dx*dx < 0.25*0.25 {
		return 1
	}
	return 0
}

// slab is the planes of the grid that one rank has, and a copy of the plane at either side.
type slab struct {
	n, first, planes int // first plane, from 1
	u                []float64
	heat             []float64 // h² f
}

const (
	below = 0
	above = 1
)

// newSlab returns the part of a rank, of so many.
func newSlab(n, rank, size int) *slab {
	s := &slab{n: n, first: rank*n/size + 1}
	s.planes = (rank+1)*n/size + 1 - s.first
	points := (s.planes + 2) * (n + 2) * (n + 2)
	s.u, s.heat = make([]float64, points), make([]float64, points)
	for z := 1; z <= s.planes; z++ {
		for y := 1; y <= n; y++ {
			for x := 1; x <= n; x++ {
				s.heat[s.at(z, y, x)] = source(n, s.first+z-1, y, x) / float64((n+1)*(n+1))
			}
		}
	}
	return s
}

// at is where a point is, by its plane from the one below the slab, 0, to the one above it.
func (s *slab) at(z, y, x int) int { return (z*(s.n+2)+y)*(s.n+2) + x }

// relax does sweeps of the method of Gauss and Seidel in red and black. Without a factor of
// over-relaxation it converges however old the planes beside the slab are, and however many
// sweeps are done with the same ones: it is an asynchronous two-stage method of A. Frommer and
// D. B. Szyld (Numerische Mathematik 69, 1994).
func (s *slab) relax(sweeps int) {
	row, plane := s.n+2, (s.n+2)*(s.n+2)
	u, heat := s.u, s.heat
	for colour := range 2 * sweeps {
		for z := 1; z <= s.planes; z++ {
			for y := 1; y <= s.n; y++ {
				// By the number in the whole grid, so that slabs agree about colours.
				first := 1 + (s.first+z+y+colour)%2
				for i, end := s.at(z, y, first), s.at(z, y, s.n); i <= end; i += 2 {
					u[i] = (u[i-1] + u[i+1] + u[i-row] + u[i+row] + u[i-plane] + u[i+plane] + heat[i]) * (1.0 / 6)
				}
			}
		}
	}
}

// residual is the largest |f + Δu| in the slab. By the maximum principle no point of the whole
// grid is wrong by more than an eighth of the largest residual of all slabs.
func (s *slab) residual() (most float64) {
	row, plane := s.n+2, (s.n+2)*(s.n+2)
	u := s.u
	for z := 1; z <= s.planes; z++ {
		for y := 1; y <= s.n; y++ {
			for i, end := s.at(z, y, 1), s.at(z, y, s.n); i <= end; i++ {
				r := u[i-1] + u[i+1] + u[i-row] + u[i+row] + u[i-plane] + u[i+plane] + s.heat[i] - 6*u[i]
				most = max(most, math.Abs(r))
			}
		}
	}
	return most * float64((s.n+1)*(s.n+1))
}

// face returns the plane that the neighbour at a side needs.
func (s *slab) face(side int) []byte {
	if side == below {
		return s.pack(1, 1)
	}
	return s.pack(s.planes, s.planes)
}

// beside takes the plane of the neighbour at a side.
func (s *slab) beside(side int, face []byte) error {
	if side == below {
		return s.unpack(0, 0, face)
	}
	return s.unpack(s.planes+1, s.planes+1, face)
}

// pack returns the values of planes, as little endian numbers of 8 bytes.
func (s *slab) pack(first, last int) []byte {
	b := make([]byte, 0, 8*(last+1-first)*s.n*s.n)
	for z := first; z <= last; z++ {
		for y := 1; y <= s.n; y++ {
			for _, v := range s.u[s.at(z, y, 1) : s.at(z, y, s.n)+1] {
				b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
			}
		}
	}
	return b
}

func (s *slab) unpack(first, last int, b []byte) error {
	if want := 8 * (last + 1 - first) * s.n * s.n; len(b) != want {
		return fmt.Errorf("%d bytes of planes: want %d", len(b), want)
	}
	for z := first; z <= last; z++ {
		for y := 1; y <= s.n; y++ {
			for x := 1; x <= s.n; x++ {
				s.u[s.at(z, y, x)] = math.Float64frombits(binary.LittleEndian.Uint64(b))
				b = b[8:]
			}
		}
	}
	return nil
}

// wrong is how far the slab is from a solution of the whole grid.
func (s *slab) wrong(solution []float64) (most float64) {
	for z := 1; z <= s.planes; z++ {
		for y := 1; y <= s.n; y++ {
			for x := 1; x <= s.n; x++ {
				want := solution[((s.first+z-2)*s.n+y-1)*s.n+x-1]
				most = max(most, math.Abs(s.u[s.at(z, y, x)]-want))
			}
		}
	}
	return most
}

// direct solves the same equations without iterating, in about 6 n⁴ steps: their matrix is
// diagonal in the basis of sines.
func direct(n int) []float64 {
	h := 1 / float64(n+1)
	sines, eigen := make([]float64, n*n), make([]float64, n)
	for j := range n {
		eigen[j] = 4 / (h * h) * math.Pow(math.Sin(math.Pi*h*float64(j+1)/2), 2)
		for k := range n {
			sines[j*n+k] = math.Sin(math.Pi * h * float64((j+1)*(k+1)))
		}
	}
	a := make([]float64, n*n*n)
	for i := range a {
		a[i] = source(n, i/n/n+1, i/n%n+1, i%n+1)
	}
	for range 3 {
		a = transform(a, sines, n)
	}
	for i := range a {
		a[i] *= 8 * h * h * h / (eigen[i/n/n] + eigen[i/n%n] + eigen[i%n])
	}
	for range 3 {
		a = transform(a, sines, n)
	}
	return a
}

// transform applies sines to the last direction of a cube, and makes that the first one: after
// three times all are as they were.
func transform(a, sines []float64, n int) []float64 {
	out := make([]float64, len(a))
	for line := range n * n {
		values := a[line*n : line*n+n]
		for j := range n {
			sum := 0.0
			for k, s := range sines[j*n : j*n+n] {
				sum += s * values[k]
			}
			out[j*n*n+line] = sum
		}
	}
	return out
}
