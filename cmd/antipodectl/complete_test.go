package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// A shell completes the names of accounts, locations and nodes, and is given nothing where no server answers.
func TestComplete(t *testing.T) {
	srv := port(t)
	for line, want := range map[string]string{
		"account show ":               "abc ledger pictures",
		"account show pictures ":      "",
		"account create ":             "",
		"account free ":               "",
		"account create x --location": "northcentralus southcentralus",
		"failover start ":             "abc ledger pictures",
		"why ":                        "abc ledger pictures",
		"fork found list --account":   "abc ledger pictures",
		"lost drop ":                  "northcentralus southcentralus",
		"lost drop northcentralus ":   "abc ledger pictures",
		"location stop ":              "northcentralus southcentralus",
		"fork resolve ":               "abc ledger pictures",
		"node start ":                 "northcentralus-1 northcentralus-2 northcentralus-3 southcentralus-1 southcentralus-2 southcentralus-3",
		"range recover south ":        "",
	} {
		args := append([]string{"__complete"}, strings.Split(line, " ")...)
		if strings.Contains(line, "--") {
			args = append(args, "")
		}
		code, out, _ := ctl(srv.URL, args...)
		require.Zero(t, code, line)
		lines := strings.Fields(out)
		require.Equal(t, strings.TrimSpace(want+" :4"), strings.Join(lines, " "), line)
	}
	code, out, errOut := ctl("http://127.0.0.1:1", "__complete", "account", "show", "")
	require.Zero(t, code)
	require.Equal(t, ":4\n", out)
	require.NotContains(t, errOut, "127.0.0.1")
}

// What the uses of commands name is known: a name that is spelled in another way would complete nothing.
func TestUsesNameWhatIsKnown(t *testing.T) {
	names := regexp.MustCompile(`^[A-Z]*$`)
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, n := range argumentsOf(c) {
			require.Regexp(t, names, string(n), c.UseLine())
			require.Contains(t, []named{anAccount, aLocation, aNode, "", "STREAM", "RANGE", "DURATION", "SIZE", "FOLDER"}, n, c.UseLine())
		}
		for _, in := range c.Commands() {
			visit(in)
		}
	}
	visit((&tool{}).root())
}
