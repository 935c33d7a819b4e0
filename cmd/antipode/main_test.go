package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/client/command"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A wrong command line has another exit code than work that fails: scripts need to know.
func TestExitCodes(t *testing.T) {
	missing := t.TempDir() + "/missing.yaml"
	for line, want := range map[string]command.Code{
		"--help":                             command.Done,
		"nonsense":                           command.Usage,
		"dev --nonsense":                     command.Usage,
		"dev --port-base 0":                  command.Usage,
		"dev --outbox-bytes 64MB":            command.Usage,
		"config check":                       command.Usage,
		"config check --gateway --dns x":     command.Usage,
		"config check " + missing:            command.Failed,
		"cert node":                          command.Usage,
		"cert ca --days 0 --name a --out x":  command.Usage,
		"health":                             command.Usage,
		"health --in-sync-env NONE http://a": command.Usage,
		"health http://127.0.0.1:1":          command.Failed,
	} {
		c := root()
		c.SetArgs(strings.Fields(line))
		c.SetOut(io.Discard)
		require.Equal(t, want, command.CodeOf(c.ExecuteContext(t.Context())), line)
	}
}
