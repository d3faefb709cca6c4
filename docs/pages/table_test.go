package pages

// Why a command is not typed.
const (
	shape  = "words of it stand for others"
	option = "it names an option"
	ends   = "ends the node that the others are typed at: net-drain of cmd/zorilla does it"
)

// programs of MPI that are called as the pages call them.
const programs = `make -s -C $REPOSITORY/examples/mpi OUT=$PWD PROGRAMS=hello MPIS=openmpi; mv hello.openmpi hello`

const venv = `/usr/bin/python3 -m venv --without-pip `

// show has all nodes show a directory to workers.
func show(dir string) string {
	return `for host in alpha beta gamma; do ZORILLA_STATE=$HOME/$host zorilla owner set expose+=` + dir + `:rw; done`
}

// listed are the pages of which there is more to say than that they are typed.
var listed = map[string]page{
	"README.md": {
		given: programs,
		as: map[string]string{
			"go run ./examples/demo": "cd $REPOSITORY && go run ./examples/demo --once",
			"zorilla dev -n 3":       "zorilla dev -n 3 -- zorilla nodes",
		},
		says: map[string]string{"go run ./examples/demo": "365596"},
		not: map[string]string{
			"bash .ci/test": "this is a part of it",
			"CGO_ENABLED=0 go build -tags urfave_cli_no_docs -o zorilla ./cmd/zorilla": "it has built the nodes",
			"go run ./testnet/hosts grid5000":                                          "asks for a terminal: testnet/hosts tests its labs",
			"go run ./testnet/chaos -story sixsites":                                   "is a step of .ci/run",
			"go run ./testnet/chaos":                                                   "is a step of .ci/run, with another seed",
		},
	},
	"docs/arrays.md": {given: "head -c 3000000 /dev/urandom >model.bin"},
	"docs/coming-from.md": {
		given: programs + `; zorilla submit -J train sleep inf`,
	},
	"docs/checkpoints.md": {
		given: "sed -n '/^# count.py/,/^```/p' $REPOSITORY/docs/checkpoints.md | grep -v '```' >count.py; " +
			"sed -n '/^# long.py/,/^```/p' $REPOSITORY/docs/checkpoints.md | grep -v '```' >long.py; cp -r $REPOSITORY/examples .",
		says: map[string]string{
			"zorilla run -n 1..4 --retries 3 -i count.py -- python3 count.py":                      "the sum is 332833500",
			"zorilla run -n 1..4 --retries 9 -t 8h --signal USR1@2m -i long.py -- python3 long.py": "steps: 1000",
		},
		not: map[string]string{
			`cd "${ZORILLA_SOCKET%/*}" && curl -s -X POST --unix-socket socket "http://node/v1/checkpoint?dir=state"`: "is said in a worker: job-checkpoint of cmd/zorilla does it",
			"zorilla move last:3":           "wants a rank that runs: job-move of cmd/zorilla does it",
			"zorilla move last:0-3,7 node7": "the same",
			"zorilla checkpoint [--epoch N] [--all-ranks] [--wait=false] [DIR]":                                                                       shape,
			`run ${steps} upto every ${every} "write_restart state/melt.restart" "shell zorilla checkpoint --all-ranks state"`:                        "is a line of LAMMPS",
			"zorilla run -n 2 --mpi --retries 9 -i examples/lammps/in.long:in.long -- sh -c 'exec lmp -in in.long -var resume ${ZORILLA_RESTART:-0}'": "takes a minute: mpi-survives of cmd/zorilla does it",
		},
	},
	"docs/files.md": {not: map[string]string{
		`{"event":"progress","step":"inputs to nodes","job":"jhnsm@zb7g6","done":123731968,"total":304087040,"rate":48338014,"left":4,"nodes":1,"holders":1}`: "is printed",
		"zorilla node --cache":           option,
		"zorilla get JOB 'frames/*' log": shape,
	}},
	"docs/groups.md": {
		given: "cp /bin/true islands; sed -n '/^# islands.toml/,/^```/p' $REPOSITORY/docs/groups.md | grep -v '```' >islands.toml; zorilla run true",
		says:  map[string]string{"zorilla check islands.toml": `north +6\.\.8 +3 of 3 `},
		not:   map[string]string{"zorilla run islands.toml": "it wants more slots than these hosts have: examples/mpi is tried by testnet/experiments/topology"},
	},
	"docs/time.md": {
		says: map[string]string{"zorilla run -n 4 -t 1m --book-after 0s hostname": "."},
		not:  map[string]string{"zorilla owner set max-walltime=8h": "would stay: job-hours of cmd/zorilla does it"},
	},
	"docs/job-files.md": {
		says: map[string]string{
			"zorilla check job.toml":                                          `- +2\.\.8 +3 of 3 `,
			"zorilla run job.toml -n 4 -- more.txt":                           "rank 3 of 4: data.txt more.txt",
			"zorilla submit -n 4 -i data.txt --print-file -- ./prog data.txt": `command = \["./prog", "data.txt"\]`,
		},
		not: map[string]string{"zorilla check FILE.toml": shape},
	},
	"docs/jobs.md": {
		given: venv + "venv",
		not: map[string]string{
			"zorilla COMMAND --help":          shape,
			"zorilla submit job.sh ARGUMENT…": shape,
		},
	},
	"docs/malleable.md": {
		inside: []string{"zorilla resize 4", "zorilla resize --release $ZORILLA_RANK", `cd "${ZORILLA_SOCKET%/*}" && curl -s -d "" --unix-socket socket "http://node/v1/workers?n=4"`},
		as:     map[string]string{"zorilla resize --release $ZORILLA_RANK": "zorilla resize --release 3"}, // or the shell ends with its rank
		not:    map[string]string{"zorilla resize JOB N": shape},
	},
	"docs/mpi.md": {
		given: programs + "; cp hello prog; cp hello first; cp hello second",
		not: map[string]string{
			"zorilla node --pin":                                     option,
			"zorilla node --run-as USER":                             shape,
			"env -u FLUX_JOB_ID -u OMPI_MCA_pmix mpirun -n 2 ./prog": "is for a script within a job: mpi-programs of cmd/zorilla does it",
		},
	},
	"docs/node.md": {
		given: "echo a secret of all machines >~/.zorilla-secret",
		not: map[string]string{
			"zorilla drain --exit": ends,
			"zorilla drain --now":  ends,
		},
	},
	"docs/parallel.md": {
		inside: []string{
			"zorilla-rsh 10.0.0.7 'hostname; uptime'",
			"parallel --ssh zorilla-rsh -S 2/10.0.0.7,2/10.0.0.8 echo {} ::: 1 2 3",
			"zorilla exec :4 hostname",
		},
		not: map[string]string{
			"zorilla run -n 6 --launcher mpiexec -i prog -- mpiexec.mpich ./prog": "the program is Open MPI's here: mpi-launcher of cmd/zorilla",
		},
	},
	"docs/placement.md": {given: "head -c 3000000 /dev/urandom >big"},
	"docs/requirements.md": {not: map[string]string{
		"zorilla node --gpus N":    shape,
		"zorilla node --label K=V": shape,
	}},
	"docs/sandbox.md": {
		given: venv + "~/venv",
		not: map[string]string{
			"zorilla node --require-sandbox full":              "not every kernel has what it asks for: that is what it is for",
			"zorilla run --net job":                            option,
			"zorilla owner set network=job":                    "other jobs of the page would not run at this node: job-network of cmd/zorilla",
			"zorilla node --keep-free SIZE":                    shape,
			"zorilla run --mount /data -n 8 -- ./prog /data/x": "this machine may have no /data: job-mounts of cmd/zorilla",
		},
	},
	"examples/mpi/README.md": {
		given: "cp -r $REPOSITORY/examples .",
		not: map[string]string{
			"apt-get install make gcc libc6-dev openmpi-bin libopenmpi-dev mpich libmpich-dev": "as .ci/tools does",
		},
		says: map[string]string{
			"zorilla run -n 6 --mpi -- ./ring.mpich":                                                         "^ring of 6 ranks: verified$",
			"zorilla run -n 2 --strategy concentrate --mpi --share-work -i h5.py -o out.h5 -- python3 h5.py": "^h5 of 2 ranks: verified$",
		},
	},
	"examples/lammps/README.md": {
		given: "cp $REPOSITORY/examples/lammps/in.melt .",
		not: map[string]string{
			"zorilla run -n 4 --mpi --retries 9 -i in.long -- sh -c 'exec lmp -in in.long -var resume ${ZORILLA_RESTART:-0}'": "takes a minute: mpi-survives of cmd/zorilla does it",
		},
	},
	"examples/snakemake/README.md": {not: map[string]string{
		"cp -r examples/snakemake /shared/work && cd /shared/work":    "a test of its own has directories that the nodes share",
		"snakemake --profile profile":                                 "as above",
		"zorilla dev --expose $PWD:rw -- snakemake --profile profile": "as above",
		"zorilla node --expose":                                       option,
	}},
	"examples/torch/README.md": {not: map[string]string{
		"zorilla run -n 6 -i ddp.py -- /usr/bin/python3 ddp.py": "torch is too large to be had for it",
		"zorilla run --gpus 1 -i gpu.py -- python3 gpu.py":      "wants a GPU: job-cuda of cmd/zorilla begins as CUDA does",
		"zorilla run -i gpu.py -- python3 gpu.py --none":        "as above",
	}},
	"examples/README.md": {
		given: "tar -C $REPOSITORY --exclude=./zorilla -c . | tar -x\n" + show("$PWD/shared"),
		as:    map[string]string{"zorilla dev -n 3": "zorilla dev -n 3 -- zorilla nodes"},
		says: map[string]string{
			"./nqueens -sum part-*":                                                              "^365596$",
			"zorilla run -n 2..16 --retries 5 -- ./nqueens -steal 15":                            "^15 queens: 2279184 solutions$",
			"zorilla run -l -n 2..4 --retries 5 -o 'slab-*' -- ./async -n 32 -pause 1ms -verify": `^0: rank 0: done after \d+ iterations, wrong by \d\.\de-(0[7-9]|1)`,
			"./async -n 32 -check slab-*":                                                        `^4 slabs: residual \d\.\de-0[67], wrong by \d\.\de-0[7-9]$`,
			"./examples/pi/pi.py -sum pi-*":                                                      `^pi = 3\.14[01]\d \+- 0\.00\d\d, by \d+00000 throws of ([2-9]|1[0-6]) ranks$`,
			"seq 9 | ./stats":                                                                    "^mean 5\nmedian 5$",
			"sort -rn counts-* >counted.txt && head -n 5 counted.txt":                            `^\d{3,} the$`,
			"zorilla run -l -n 4 -i examples/shards/tests:tests --kill-on-bad-exit=false -- ./examples/shards/shard.py tests": `^3: Ran 2 tests`,
			"cd examples/notebook && python3 tour.py": `(?s)^\[25, 168, 1229, 9592, 78498\]\n168 COMPLETED on \S+\n3000000\n.*ZeroDivisionError.*\.<lambda>`,
		},
		so: []string{
			// What the page shows is what 16 ranks come to, however many there was room for.
			"for rank in $(seq 0 15); do ZORILLA_RANK=$rank ./examples/pi/pi.py 200000; done; ./examples/pi/pi.py -sum pi-* | grep -Fx \"$(sed -n 's/.*# \\(pi = .*\\)/\\1/p' examples/README.md)\"",
			"test $(wc -l <sweep.txt) = 200",
			"test $(wc -l <epidemic.csv) = 26 && grep '^3.0,0.9[0-9]*,0.9[0-9]*$' epidemic.csv && grep '^0.5,0.000,0.000$' epidemic.csv",
			"test $(ls thumbnails | wc -l) = 8 && jpegtopnm thumbnails/8.jpg >8.ppm && pamfile 8.ppm | grep '160 by 120'",
			"test $(stat -c %s zoom.y4m) = $((32 + 12 * (6 + 320*240)))",
			"for i in $(seq -f %03g 12); do md5sum <frames/frame-$i; done | sort -u | wc -l | grep '^12$'",
			`cat docs/*.md | tr A-Z a-z | grep -oE '[a-z]+' | sort | uniq -c | awk '{ print $1, $2 }' | sort >words; sort counts-* | cmp - words`,
		},
	},
}
