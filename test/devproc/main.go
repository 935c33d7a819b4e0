package devproc

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// BinaryVariable names the server's binary in the environment. Main builds one unless it
// is set, as it is to test a binary built otherwise: with the race detector, say.
const BinaryVariable = "ANTIPODE_BINARY"

const buildWait = 5 * time.Minute

// Binary is the path of the server's binary, once Main has begun.
func Binary() string { return os.Getenv(BinaryVariable) }

// Main runs the tests of a package that starts the server, and finds leaked goroutines.
// It returns the exit code. TestMain calls it. With build tags it always builds the server, with them.
func Main(m *testing.M, tags ...string) int {
	flag.Parse()
	if (Binary() == "" || len(tags) > 0) && !testing.Short() {
		dir, err := os.MkdirTemp("", "antipode-test")
		if err == nil {
			defer func() { _ = os.RemoveAll(dir) }()
			err = buildInto(dir, tags)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func buildInto(dir string, tags []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), buildWait)
	defer cancel()
	binary, err := Build(ctx, dir, tags...)
	if err != nil {
		return err
	}
	return os.Setenv(BinaryVariable, binary)
}
