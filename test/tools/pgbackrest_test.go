package tools

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/test/devproc"
	"antipode/test/rest"
)

const (
	pgConfig = `
archive_mode = on
archive_command = 'pgbackrest --config=%[1]s/pgbackrest.conf --stanza=main archive-push %%p'
listen_addresses = ''
unix_socket_directories = '%[1]s'
port = %[2]d
`
	// pgbackrestConfig reaches the relay where the public name would lead.
	pgbackrestConfig = `
[global]
repo1-type=azure
repo1-azure-account=%[3]s
repo1-azure-key=%[4]s
repo1-azure-container=postgres
repo1-path=/repo
repo1-storage-host=127.0.0.1
repo1-storage-port=%[5]d
repo1-storage-verify-tls=n
repo1-retention-full=1
repo1-bundle=y
log-level-console=warn
log-level-file=off
lock-path=%[1]s/lock
spool-path=%[1]s/spool
start-fast=y
process-max=4
archive-timeout=60
[main]
pg1-path=%[1]s/data
pg1-socket-path=%[1]s
pg1-port=%[2]d
`
)

// postgres is a PostgreSQL that archives to the server, run as its own user.
type postgres struct {
	dir, bin string
	port     int
	user     *syscall.Credential
	relay    *relay
}

// newPostgres makes a cluster of PostgreSQL; it skips the test where Debian's packages are missing.
func newPostgres(t *testing.T, f *relay) *postgres {
	t.Helper()
	bins, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	require.NoError(t, err)
	of, err := user.Lookup("postgres")
	if err != nil || len(bins) == 0 || os.Getuid() != 0 {
		gap("pgbackrest: not installed, or not run by root")
		t.Skip("there is no PostgreSQL")
	}
	uid, err := strconv.Atoi(of.Uid)
	require.NoError(t, err)
	gid, err := strconv.Atoi(of.Gid)
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "pg") // The path of a socket is short.
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chown(dir, uid, gid))
	ports, err := devproc.FreePorts(t, 1)
	require.NoError(t, err)
	p := &postgres{dir, bins[0], ports[0], &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, f}
	p.must(t, p.bin+"/initdb", "-D", dir+"/data", "-A", "trust", "--no-sync")
	archive := fmt.Sprintf(pgbackrestConfig, dir, p.port, rest.DevAccount, rest.DevKey, f.securePort)
	require.NoError(t, os.WriteFile(dir+"/pgbackrest.conf", []byte(archive), 0o644))
	require.NoError(t, os.WriteFile(dir+"/postgres.conf", fmt.Appendf(nil, pgConfig, dir, p.port), 0o644))
	p.must(t, "sh", "-c", "cat "+dir+"/postgres.conf >> "+dir+"/data/postgresql.conf")
	return p
}

// must runs a program as the user of PostgreSQL.
func (p *postgres) must(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.SysProcAttr = p.dir, &syscall.SysProcAttr{Credential: p.user}
	cmd.Env = append(os.Environ(), "HOME="+p.dir, "PGHOST="+p.dir, fmt.Sprintf("PGPORT=%d", p.port), "PGDATABASE=postgres")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s\nanswers %v", name, args, err, out, p.relay.take())
	}
	return string(out)
}

func (p *postgres) start(t *testing.T) {
	t.Helper()
	p.must(t, p.bin+"/pg_ctl", "-D", p.dir+"/data", "-w", "-t", "120", "-l", p.dir+"/postgres.log", "start")
}

func (p *postgres) stop(t *testing.T) {
	t.Helper()
	p.must(t, p.bin+"/pg_ctl", "-D", p.dir+"/data", "-w", "-t", "120", "-m", "fast", "stop")
}

func (p *postgres) backrest(t *testing.T, args ...string) string {
	t.Helper()
	return p.must(t, "pgbackrest", append([]string{"--config=" + p.dir + "/pgbackrest.conf", "--stanza=main"}, args...)...)
}

// restricts are the lines of a dump that differ each time.
var restricts = regexp.MustCompile(`(?m)^\\(un)?restrict .*$`)

func (p *postgres) dump(t *testing.T) string {
	t.Helper()
	return restricts.ReplaceAllString(p.must(t, p.bin+"/pg_dump"), "")
}

// PostgreSQL archives its log and its backups here by pgBackRest; what is restored is what was there at the end, and what
// is kept no longer is deleted.
func TestPgBackRest(t *testing.T) {
	needTools(t)
	dev := startDev(t)
	f := newRelay(t, dev.PortBase)
	c := rest.NewPathStyleOf(dev.HTTP, rest.DevAccount, dev.PortBase, false)
	require.NoError(t, c.CreateContainer(t.Context(), "postgres"))
	p := newPostgres(t, f)
	p.start(t)
	p.backrest(t, "stanza-create")
	p.backrest(t, "check")
	scale := max(1, *size/(16<<20)) // Of 15 MiB each.
	p.must(t, p.bin+"/pgbench", "-q", "-i", "-s", strconv.FormatInt(scale, 10))
	p.backrest(t, "backup", "--type=full")
	for _, kind := range []string{"incr", "diff", "full"} { // With the last, the first is kept no longer.
		p.must(t, p.bin+"/pgbench", "-t", "200", "-c", "4", "-n")
		p.backrest(t, "backup", "--type="+kind)
	}
	require.Equal(t, 1, strings.Count(p.backrest(t, "info"), "backup:"), "full, incr and diff are gone")
	p.must(t, p.bin+"/pgbench", "-t", "200", "-c", "4", "-n")
	was := p.dump(t)
	require.Greater(t, int64(len(was)), scale<<20)
	p.stop(t) // All of its log is archived then.

	p.must(t, "rm", "-rf", p.dir+"/data")
	p.must(t, "mkdir", "-m", "0700", p.dir+"/data")
	p.backrest(t, "restore")
	p.start(t)
	p.must(t, p.bin+"/psql", "-c", "select pg_promote()")
	require.True(t, was == p.dump(t), "what was restored differs") // Too long to print.
	p.backrest(t, "verify")
	p.stop(t)
	errors := f.take()
	require.Empty(t, withStatus(errors, 501))
	t.Logf("pgBackRest: answers that are errors: %v", errors)
}
