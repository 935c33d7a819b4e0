package check_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shippedAt is where the package has the documents, in the folders of the repository.
const shippedAt = "usr/share/doc/antipode"

var (
	docNamed    = regexp.MustCompile(`\bdocs/[\w/-]+\.(?:md|yaml)\b`)
	quotedInGo  = regexp.MustCompile("\"(?:[^\"\\\\\n]|\\\\.)*\"|`[^`]*`")
	commentInGo = regexp.MustCompile(`(?m)^\s*//.*$`)
)

// documents are the files of the repository that the package ships as documents, from the root.
func documents(t *testing.T) (files []string) {
	t.Helper()
	for _, folder := range []string{"docs", "deploy/prometheus", "deploy/grafana"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(file) == ".go" {
				return err
			}
			rel, err := filepath.Rel(root, file)
			files = append(files, filepath.ToSlash(rel))
			return err
		}))
	}
	return append(files, "README.md")
}

// namedDocuments are the documents that texts of the programs name: errors, help and alerts.
func namedDocuments(t *testing.T) (found []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && file != root || slices.Contains([]string{"docs", "test", "check", "node_modules"}, d.Name())) {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		for _, text := range quotedInGo.FindAllString(commentInGo.ReplaceAllString(textOf(t, file), ""), -1) {
			found = append(found, docNamed.FindAllString(text, -1)...)
		}
		return nil
	}))
	return append(found, docNamed.FindAllString(textOf(t, "prometheus/alerts.yaml"), -1)...)
}

// requireShipped checks the documents in a folder into which the package was unpacked: all of them are there, as they
// are in the repository, and those that errors and alerts name are among them.
func requireShipped(t *testing.T, dir string) {
	t.Helper()
	at := func(file string) string { return filepath.Join(dir, shippedAt, file) }
	for _, file := range documents(t) {
		require.FileExists(t, at(file))
		require.Equal(t, textOf(t, filepath.Join(root, file)), textOf(t, at(file)), file)
		info, err := os.Stat(at(file))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o644), info.Mode().Perm(), file)
	}
	named := namedDocuments(t)
	slices.Sort(named)
	named = slices.Compact(named)
	require.GreaterOrEqual(t, len(named), 25)
	for _, file := range named {
		require.FileExists(t, at(file), "a text names it")
	}
	require.Equal(t, textOf(t, filepath.Join(root, "LICENSE")), textOf(t, at("copyright")))
	require.Contains(t, textOf(t, at("copyright")), "Version 2.0, January 2004")
}

// requireManual checks that there is a manual page for each command of both programs, in a folder into which the package
// was unpacked, and that a shell can read the completions.
func requireManual(t *testing.T, dir string) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(dir, "usr/share/man/man1/*.gz"))
	require.NoError(t, err)
	require.Greater(t, len(pages), 70)
	for page, has := range map[string]string{
		"antipode.1.gz": "antipode-cluster", "antipode-cluster-start.1.gz": "--witness", "antipodectl.1.gz": "antipodectl-check",
		"antipodectl-failover-start.1.gz": "antipodectl " + packageVersion,
	} {
		text := run(t, "zcat", filepath.Join(dir, "usr/share/man/man1", page))
		require.Contains(t, text, has, page)
	}
	for _, program := range []string{"antipode", "antipodectl"} {
		file := filepath.Join(dir, "usr/share/bash-completion/completions", program)
		run(t, "bash", "-n", file)
		require.Contains(t, textOf(t, file), "__complete")
	}
}
