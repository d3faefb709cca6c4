package mpi

import _ "embed"

//go:embed libzpmi/zpmi.arm64.so
var client []byte

//go:embed libzpmi/finish.arm64.so
var finish []byte
