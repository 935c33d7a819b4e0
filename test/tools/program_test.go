package tools

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// program is one that somebody else wrote, with its way to the server.
type program struct {
	name, path string
	env        []string
	relay      *relay
}

// secure is the environment of a program that insists on HTTPS.
func (f *relay) secure() []string {
	return []string{"HTTPS_PROXY=" + f.url, "https_proxy=" + f.url, "SSL_CERT_FILE=" + f.roots, "SSL_CERT_DIR=/nonexistent"}
}

// run runs the program and returns what it printed on its standard output, and whether it ended well. One that did
// not fails the test, unless the server answered 501.
func (p program) run(t *testing.T, args ...string) (string, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), toolWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Env = append(os.Environ(), p.env...)
	var out, diagnosis strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &diagnosis
	p.relay.take()
	err := cmd.Run()
	seen := p.relay.take()
	what := p.name + " " + args[0]
	missing := withStatus(seen, http.StatusNotImplemented)
	for _, a := range seen {
		if a.status == http.StatusBadRequest || a.status == http.StatusForbidden || a.status == http.StatusInternalServerError ||
			a.status == http.StatusBadGateway {
			t.Fatalf("%s: %v (%v)\n%s%s", what, a, err, out.String(), diagnosis.String())
		}
	}
	switch {
	case err != nil && len(missing) == 0:
		t.Fatalf("%s: %v; answers %v\n%s%s", what, err, seen, out.String(), diagnosis.String())
	case err != nil:
		gap("%s failed at %v", what, missing)
	case len(missing) > 0:
		gap("%s went on after %v", what, missing)
	}
	t.Logf("%s: %v, answers that are errors: %v", what, err, seen)
	return out.String(), err == nil
}

// must is run of what has to end well, 501 or not.
func (p program) must(t *testing.T, args ...string) string {
	t.Helper()
	out, ok := p.run(t, args...)
	require.True(t, ok, "%s %s", p.name, args)
	return out
}

// withStatus are the answers with a status.
func withStatus(seen []answer, status int) []answer {
	return slices.DeleteFunc(slices.Clone(seen), func(a answer) bool { return a.status != status })
}
