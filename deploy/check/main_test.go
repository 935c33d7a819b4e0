// Package check_test holds what deploy/ has to its promises: manifests are checked against the schemas and types that
// their programs publish, and what they start is started here, as plain processes on loopback. There is no container
// and no cluster in these tests.
package check_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// root is the repository, seen from deploy, where the tests run.
const root = ".."

// binaries has what the tests run, by the path that the image has it at.
var binaries = map[string]string{}

const (
	antipodePath = "/usr/bin/antipode"
	ctlPath      = "/usr/bin/antipodectl"
	natsPath     = "nats-server"
)

// buildWait bounds the builds: a machine that shares its processors takes minutes.
const buildWait = 8 * time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "antipode-deploy")
	if err == nil {
		err = os.Chdir("..")
	}
	code := 1
	if err == nil {
		if err = build(dir); err == nil {
			code = m.Run()
		}
		_ = os.RemoveAll(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// build makes the binaries with the product's module: its dependencies, not those of these tests.
func build(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), buildWait)
	defer cancel()
	for at, pkg := range map[string]string{
		antipodePath: "./cmd/antipode", ctlPath: "./cmd/antipodectl", natsPath: "github.com/nats-io/nats-server/v2",
	} {
		out := filepath.Join(dir, filepath.Base(at))
		cmd := exec.CommandContext(ctx, "go", "build", "-o", out, pkg)
		cmd.Dir = root
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build %s: %w\n%s", pkg, err, text)
		}
		binaries[at] = out
	}
	return nil
}
