package check_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// container is what a manifest says of one container, as far as a plain process can follow.
type container struct {
	// name is unique; hosts are the names by which others reach it.
	name  string
	hosts []string
	// argv is entrypoint and arguments, check those of its health check; nil without one.
	argv, check []string
	env         map[string]string
	// volumes maps mount paths to names of volumes: who names the same one shares a folder.
	volumes map[string]string
	// binds maps mount paths to folders of the repository.
	binds map[string]string
	// files are the contents of configuration files by mount path.
	files map[string]string
	// stop is how long it may take to end after SIGTERM.
	stop time.Duration
}

// fleet runs containers as plain processes. Each has its own loopback address, so that ports stay as they are.
// What it changes in command lines and configuration files: the names of hosts before a port, and the addresses of a
// container to itself, become loopback addresses; paths of mounts become folders of the test. Nothing else.
type fleet struct {
	t   *testing.T
	dir string
	// address by host name.
	address map[string]string
	running map[string]*process
}

type process struct {
	container
	ip  string
	log string
	cmd *exec.Cmd
	// exited is closed once the process has ended, then exit is set.
	exited chan struct{}
	exit   error
}

// startWait bounds what waits for a process or a health check, on a machine that shares its processors.
const startWait = 4 * time.Minute

func newFleet(t *testing.T, containers []container) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir(), address: map[string]string{}, running: map[string]*process{}}
	second, third := 64+rand.IntN(128), rand.IntN(256)
	for i, c := range containers {
		for _, h := range c.hosts {
			f.address[h] = fmt.Sprintf("127.%d.%d.%d", second, third, i+1)
		}
	}
	t.Cleanup(f.kill)
	return f
}

// prepare writes the files of a container, translated.
func (f *fleet) prepare(c container) *process {
	f.t.Helper()
	p := &process{container: c, ip: f.address[c.hosts[0]], log: filepath.Join(f.dir, c.name+".log"), exited: make(chan struct{})}
	for _, v := range c.volumes {
		require.NoError(f.t, os.MkdirAll(f.volume(v), 0o700))
	}
	for at, text := range c.files {
		file := f.file(c, at)
		require.NoError(f.t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(f.t, os.WriteFile(file, []byte(f.translate(p, text)), 0o600))
	}
	return p
}

func (f *fleet) volume(name string) string { return filepath.Join(f.dir, "volumes", name) }

func (f *fleet) file(c container, at string) string {
	return filepath.Join(f.dir, "files", c.name, at)
}

// own matches a port on any or the loopback address: the container itself.
var own = regexp.MustCompile(`(^|[\s"'\[=/])(0\.0\.0\.0|127\.0\.0\.1|localhost)?(:\d{4,5})\b`)

// translate is the one place where a text of a manifest is changed.
func (f *fleet) translate(p *process, text string) string {
	text = own.ReplaceAllString(text, "${1}"+p.ip+"${3}")
	text = replaceNames(text, f.address, `(^|[^\w.-])(`, `)(:\d+)`)
	paths := maps.Clone(binaries)
	delete(paths, natsPath)
	for at, v := range p.volumes {
		paths[at] = f.volume(v)
	}
	maps.Copy(paths, p.binds)
	for at := range p.files {
		paths[at] = f.file(p.container, at)
	}
	return replaceNames(text, paths, `(^|[^\w./-])(`, `)(/|$|[^\w.-])`)
}

// replaceNames replaces names, the longest one that fits, between two patterns that are kept.
func replaceNames(text string, by map[string]string, before, after string) string {
	names := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return len(b) - len(a) })
	if len(names) == 0 {
		return text
	}
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = regexp.QuoteMeta(n)
	}
	re := regexp.MustCompile(`(?m)` + before + strings.Join(quoted, "|") + after)
	// Twice: the end of one match may be the beginning of the next one.
	for range 2 {
		text = re.ReplaceAllStringFunc(text, func(m string) string {
			g := re.FindStringSubmatch(m)
			return g[1] + by[g[2]] + g[3]
		})
	}
	return text
}

// command is a command line within a container.
func (f *fleet) command(ctx context.Context, p *process, argv []string) *exec.Cmd {
	args := make([]string, len(argv))
	for i, a := range argv {
		args[i] = f.translate(p, a)
		if i > 0 && argv[i-1] == "--host" && f.address[a] != "" { // The host of a certificate.
			args[i] = f.address[a]
		}
	}
	binary := args[0]
	if b := binaries[argv[0]]; b != "" {
		binary = b
	}
	cmd := exec.CommandContext(ctx, binary, args[1:]...)
	cmd.Env = os.Environ()
	for k, v := range p.env {
		cmd.Env = append(cmd.Env, k+"="+f.translate(p, v))
	}
	cmd.Env = append(cmd.Env, "ANTIPODE_ADMIN=http://"+p.ip+":10080") // What is 127.0.0.1 in the container.
	return cmd
}

// once runs a container until it ends.
func (f *fleet) once(c container) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), startWait)
	defer cancel()
	p := f.prepare(c)
	out, err := f.command(ctx, p, c.argv).CombinedOutput()
	require.NoError(f.t, err, "%s: %s", c.name, out)
}

// start starts a container.
func (f *fleet) start(c container) {
	f.t.Helper()
	p := f.prepare(c)
	log, err := os.Create(p.log)
	require.NoError(f.t, err)
	p.cmd = f.command(context.Background(), p, c.argv)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // A test that is killed leaves nothing behind.
	require.NoError(f.t, p.cmd.Start(), c.name)
	require.NoError(f.t, log.Close())
	go func() { p.exit = p.cmd.Wait(); close(p.exited) }()
	f.running[c.name] = p
}

// exec runs a command in a container that runs.
func (f *fleet) exec(name string, argv []string) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), startWait)
	defer cancel()
	p := f.running[name]
	require.NotNil(f.t, p, "no container %s", name)
	out, err := f.command(ctx, p, argv).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	require.NoError(f.t, err, "%s: %v\n%s", name, argv, f.tail(p))
	return string(out)
}

// awaitHealthy waits until the health checks of all named containers pass.
func (f *fleet) awaitHealthy(names ...string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), startWait)
	defer cancel()
	for _, name := range names {
		p := f.running[name]
		for p.check != nil {
			out, err := f.command(ctx, p, p.check).CombinedOutput()
			if err == nil {
				break
			}
			select {
			case <-p.exited:
				require.FailNow(f.t, "the process ended", "%s: %v\n%s", name, p.exit, f.tail(p))
			case <-ctx.Done():
				require.FailNow(f.t, "not healthy in time", "%s: %v: %s\n%s", name, err, out, f.tail(p))
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
}

// tail is the end of what a process printed.
func (f *fleet) tail(p *process) string {
	text, _ := os.ReadFile(p.log)
	return string(text[max(0, len(text)-4<<10):])
}

// stop ends all processes by SIGTERM and checks that each ends well within its time.
func (f *fleet) stop() {
	f.t.Helper()
	for _, p := range f.running {
		select {
		case <-p.exited:
			require.FailNow(f.t, "the process ended by itself", "%s: %v\n%s", p.name, p.exit, f.tail(p))
		default:
		}
		require.NoError(f.t, p.cmd.Process.Signal(syscall.SIGTERM), p.name)
	}
	for name, p := range f.running {
		require.NotZero(f.t, p.stop, "%s has no time to stop", name)
		select {
		case <-p.exited:
		case <-time.After(p.stop):
			require.FailNow(f.t, "SIGTERM does not end it in its time", "%s\n%s", name, f.tail(p))
		}
		if p.argv[0] == antipodePath { // NATS ends by the signal, with 1.
			require.NoError(f.t, p.exit, "%s\n%s", name, f.tail(p))
		}
		delete(f.running, name)
	}
}

func (f *fleet) kill() {
	for _, p := range f.running {
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}
