package help

import (
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestHelpOfAnApplication(t *testing.T) {
	app := &cli.App{
		HelpName: "zoo", Usage: "keep animals", UsageText: "zoo COMMAND", Description: "one\n\ntwo",
		Commands: []*cli.Command{
			{Name: "feed", Category: "Animals", Usage: "give them food"},
			{Name: "version", Usage: "print the version"},
			{Name: "secret", Category: "Animals", Usage: "nothing", Hidden: true},
			{Name: "in", Category: "Visitors", Usage: "let them in"},
			{Name: "wash", Category: "Animals", Usage: "give them water"},
		},
		Flags: []cli.Flag{&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "say nothing", DisableDefaultText: true}},
	}
	const want = `NAME:
   zoo - keep animals

USAGE:
   zoo COMMAND

DESCRIPTION:
   one

   two

COMMANDS:
   Animals:
     feed     give them food
     wash     give them water
   Other:
     version  print the version
   Visitors:
     in       let them in

GLOBAL OPTIONS:
   --quiet, -q              say nothing
`
	printed(t, app, want)
}

func TestHelpOfACommand(t *testing.T) {
	long := strings.Repeat("food that is long ", 6)
	c := &cli.Command{HelpName: "zoo feed", Usage: "give them food", UsageText: "zoo feed ANIMAL", Flags: []cli.Flag{
		&cli.StringSliceFlag{Name: "with", Usage: "`FOOD`, repeatable"},
		&cli.StringFlag{Name: "from", Usage: long, Value: "the box", EnvVars: []string{"ZOO_BOX"}},
		&cli.StringFlag{Name: "a-name-that-is-long", Aliases: []string{"n"}, Usage: "`ANIMAL` to feed"},
		&cli.StringFlag{Name: "hidden", Usage: "nothing", Hidden: true},
	}}
	const want = `NAME:
   zoo feed - give them food

USAGE:
   zoo feed ANIMAL

OPTIONS:
   --with FOOD              FOOD, repeatable
   --from value             food that is long food that is long food that is long food that is long
                            food that is long food that is long (default: "the box") [$ZOO_BOX]
   --a-name-that-is-long ANIMAL, -n ANIMAL
                            ANIMAL to feed
`
	printed(t, c, want)
}

func printed(t *testing.T, of any, want string) {
	t.Helper()
	var got strings.Builder
	Print(&got, "", of)
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}
