package devproc

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// ModuleRoot returns the folder of the module the test runs in.
func ModuleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if filepath.Base(mod) != "go.mod" {
		return "", fmt.Errorf("go env GOMOD says %q: run the tests inside the module", mod)
	}
	return filepath.Dir(mod), nil
}

// Build compiles the server, with build tags, into dir and returns the binary's path.
func Build(ctx context.Context, dir string, tags ...string) (string, error) {
	return build(ctx, dir, "antipode", tags)
}

// BuildTool compiles antipodectl into dir and returns the binary's path.
func BuildTool(ctx context.Context, dir string) (string, error) {
	return build(ctx, dir, "antipodectl", nil)
}

func build(ctx context.Context, dir, command string, tags []string) (string, error) {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, command)
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", strings.Join(tags, ","), "-o", binary, "./cmd/"+command)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/%s: %w\n%s", command, err, out)
	}
	return binary, nil
}
