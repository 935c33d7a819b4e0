package check_test

import (
	"context"
	"debug/elf"
	"errors"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pages are those of docs/deploy.
const pages = root + "/docs/deploy/"

func fieldOf(connection, name string) string {
	for _, part := range strings.Split(connection, ";") {
		if v, ok := strings.CutPrefix(part, name+"="); ok {
			return v
		}
	}
	return ""
}

func goVersion(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile(`^go(\d+\.\d+\.\d+)`).FindStringSubmatch(runtime.Version())
	require.NotNil(t, m, runtime.Version())
	return m[1]
}

// statusByName asks for /healthz at an address, under another name.
func statusByName(t *testing.T, address, host string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	require.NoError(t, err)
	r.Host = host
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode
}

// commands are the command lines of a page's code blocks, without what follows #, with lines that end in \ joined.
func commands(t *testing.T, page string) (lines []string) {
	t.Helper()
	inside := false
	for _, line := range strings.Split(strings.ReplaceAll(textOf(t, page), "\\\n", " "), "\n") {
		if strings.HasPrefix(line, "```") {
			inside = !inside && (line == "```" || line == "```sh")
			continue
		}
		line, _, _ = strings.Cut(line, " #")
		if line = strings.TrimSpace(line); inside && line != "" {
			lines = append(lines, line)
		}
	}
	require.NotEmpty(t, lines, page)
	return lines
}

// execLines are the words of the lines of a page that begin with a prefix, without it.
func execLines(t *testing.T, page, prefix string) (out [][]string) {
	t.Helper()
	for _, line := range commands(t, pages+page) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			out = append(out, strings.Fields(rest))
		}
	}
	require.NotEmpty(t, out, page)
	return out
}

// callOfOurs finds a call of ours where a command stands: at the start of a line or after what begins another command.
// callInImage has the arguments of the image's entrypoint.
var (
	callOfOurs  = regexp.MustCompile(`(?:^|[;&] *|until |do |\$\(|exec \S+ |-- +)(?:/usr/bin/)?(antipodectl|antipode)((?: +[^\s|;&)]+)+)`)
	callInImage = regexp.MustCompile(`^docker compose run (?:--\S+ )*\S+ (cert .*)$`)
	shellVar    = regexp.MustCompile(`\$\w+`)
)

// Every command line of ours in the pages names subcommands and flags that exist, with values that they take.
//
// Capability: Deploy: Commands of these pages.
func TestCommandsExist(t *testing.T) {
	files, err := filepath.Glob(pages + "*.md")
	require.NoError(t, err)
	require.Len(t, files, 3)
	checked := map[string]int{}
	for _, file := range files {
		for _, line := range commands(t, file) {
			line = shellVar.ReplaceAllString(line, "1")
			for _, m := range callOfOurs.FindAllStringSubmatch(line, -1) {
				require.NoError(t, wellFormed(t, m[1], strings.Fields(m[2])), "%s: %s", file, line)
				checked[filepath.Base(file)]++
			}
			if m := callInImage.FindStringSubmatch(line); m != nil {
				require.NoError(t, wellFormed(t, "antipode", strings.Fields(m[1])), "%s: %s", file, line)
				checked[filepath.Base(file)]++
			}
		}
	}
	require.Equal(t, map[string]int{"compose.md": 5, "systemd.md": 18, "kubernetes.md": 9}, checked)
}

// wellFormed asks the command for its help with all flags: unknown flags and bad values are refused before.
func wellFormed(t *testing.T, name string, args []string) error {
	t.Helper()
	binary := binaries[antipodePath]
	if name == "antipodectl" {
		binary = binaries[ctlPath]
	}
	out, err := exec.CommandContext(t.Context(), binary, append(args, "--help")...).CombinedOutput()
	if err != nil {
		return err
	}
	m := regexp.MustCompile(`(?m)^Usage:\n  (\S+(?: [a-z][a-z-]*)*)`).FindStringSubmatch(string(out))
	require.NotNil(t, m, "%s", out)
	path := strings.Fields(m[1])[1:]
	require.Equal(t, path, args[:min(len(path), len(args))], "%s %v is %s", name, args, m[1])
	require.NotContains(t, string(out), "Available Commands:", "%s %v only holds commands", name, args)
	return nil
}

// The check itself finds what does not exist.
func TestCommandsCheck(t *testing.T) {
	require.NoError(t, wellFormed(t, "antipodectl", strings.Fields("account create pictures --location north")))
	require.Error(t, wellFormed(t, "antipodectl", strings.Fields("account create pictures --locations north")))
	require.Error(t, wellFormed(t, "antipode", strings.Fields("cert node --node one")))
}

// What drains has the time for it: by default, and where a configuration of these folders sets another time.
//
// Capability: Deploy: Time to stop.
func TestDrainFits(t *testing.T) {
	m := regexp.MustCompile("(?s)- `drain.timeout`: .*?Default: ([0-9a-z]+)\\.").FindStringSubmatch(textOf(t, root+"/docs/configuration.md"))
	require.NotNil(t, m)
	spans := []string{m[1]}
	for _, pattern := range []string{"compose/*/*.yaml", "compose/*.yaml", "kubernetes/overlays/*/*.yaml", "systemd/examples/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			if set := regexp.MustCompile(`(?m)^drain:\n  timeout: (\S+)$`).FindStringSubmatch(textOf(t, file)); set != nil {
				spans = append(spans, set[1])
			}
		}
	}
	require.Len(t, spans, 3)
	for _, span := range spans {
		drain, err := time.ParseDuration(span)
		require.NoError(t, err)
		require.LessOrEqual(t, drain+time.Minute, drainRoom, "a supervisor waits a minute longer, docs/node.md has it")
	}
}

// glibcOf are the minor versions of the C library's symbols that a binary imports.
func glibcOf(t *testing.T, binary string) (minors []int) {
	t.Helper()
	f, err := elf.Open(binary)
	require.NoError(t, err)
	symbols, err := f.ImportedSymbols()
	require.NoError(t, errors.Join(err, f.Close()))
	for _, s := range symbols {
		if v, ok := strings.CutPrefix(s.Version, "GLIBC_2."); ok {
			v, _, _ = strings.Cut(v, ".")
			n, err := strconv.Atoi(v)
			require.NoError(t, err)
			minors = append(minors, n)
		}
	}
	require.NotEmpty(t, minors)
	return minors
}
