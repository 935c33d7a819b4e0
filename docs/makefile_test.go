package docs_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var makeTarget = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):(?:[^=\n]*?)(## .*)?$`)

// `make` lists every target under a group, and the README starts with the first one.
func TestMakeListsItsTargets(t *testing.T) {
	text, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-C", "..").CombinedOutput()
	require.NoError(t, err, "%s", out)
	listed := map[string]string{}
	group := ""
	for _, line := range strings.Split(string(out), "\n") {
		if rest, target := strings.CutPrefix(line, "  make "); target {
			require.NotEmpty(t, group, line)
			listed[strings.Fields(rest)[0]] = group
		} else if line != "" {
			group = line
		}
	}
	phony := regexp.MustCompile(`(?m)^\.PHONY:(.*)$`).FindAllSubmatch(text, -1)
	require.Len(t, phony, 1)
	var targets []string
	for _, m := range makeTarget.FindAllStringSubmatch(string(text), -1) {
		require.NotEmpty(t, m[2], "make %s has no line in the list", m[1])
		targets = append(targets, m[1])
		require.Contains(t, listed, m[1])
	}
	require.ElementsMatch(t, targets, strings.Fields(string(phony[0][1])))
	require.Len(t, listed, len(targets))
	require.Equal(t, "Run it", listed["run"])
	require.Equal(t, "Deploy", listed["package"])
}
