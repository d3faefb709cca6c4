package mpi

import _ "embed"

//go:embed libzpmi/zpmi.amd64.so
var client []byte

//go:embed libzpmi/finish.amd64.so
var finish []byte
