package check_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// run runs a command of the system and returns what it printed.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), buildWait)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	require.NoError(t, err, "%s %v\n%s", name, args, out)
	return string(out)
}

// needs skips a test where the system lacks a tool of Debian.
func needs(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
}

const (
	packageVersion    = "1.2.3"
	packageMaintainer = "A Test <test@example.invalid>"
)

// debian makes the package, with paths in the binaries: a build without them compiles everything again.
func debian(t *testing.T) string {
	t.Helper()
	needs(t, "dpkg-deb", "dpkg", "make", "systemd-sysusers", "systemd-tmpfiles")
	dist := t.TempDir()
	run(t, "make", "-C", root, "package", "VERSION="+packageVersion, "MAINTAINER="+packageMaintainer, "PACKAGE_FLAGS=", "DIST="+dist)
	files, err := filepath.Glob(filepath.Join(dist, "*.deb"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	return files[0]
}

// system is a folder in which dpkg installs, with nothing of Debian.
type system struct {
	t   *testing.T
	dir string
}

func newSystem(t *testing.T) *system {
	t.Helper()
	s := &system{t, t.TempDir()}
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "etc"} {
		require.NoError(t, os.MkdirAll(s.at(dir), 0o755))
	}
	for _, file := range []string{"status", "available"} {
		require.NoError(t, os.WriteFile(s.at("var/lib/dpkg/"+file), nil, 0o644))
	}
	return s
}

func (s *system) at(path string) string { return filepath.Join(s.dir, path) }

// dpkg runs it on the folder: its scripts get the folder in DPKG_ROOT, and nothing it depends on is there.
func (s *system) dpkg(args ...string) {
	s.t.Helper()
	run(s.t, "dpkg", append([]string{
		"--root=" + s.dir, "--log=/dev/null", "--force-script-chrootless", "--force-depends", "--force-not-root", "--force-confold",
	}, args...)...)
}

// The package, as dpkg-deb and dpkg see it: files and their modes, one configuration file that an upgrade does not
// overwrite, a user without a shell, folders that only root writes. Nothing is enabled. Its removal leaves
// configuration, a purge leaves certificates and data.
//
// Capability: Deploy: systemd and a Debian package.
func TestPackage(t *testing.T) {
	deb := debian(t)
	require.Equal(t, packageVersion, strings.TrimSpace(run(t, "dpkg-deb", "-f", deb, "Version")))
	require.Equal(t, packagedFiles, listed(run(t, "dpkg-deb", "-c", deb)))
	unpacked := t.TempDir()
	run(t, "dpkg-deb", "-x", deb, unpacked)
	requireShipped(t, unpacked)
	requireManual(t, unpacked)
	require.Equal(t, packageMaintainer, strings.TrimSpace(run(t, "dpkg-deb", "-f", deb, "Maintainer")))
	control := t.TempDir()
	run(t, "dpkg-deb", "-e", deb, control)
	require.Equal(t, "/etc/default/antipode\n", textOf(t, filepath.Join(control, "conffiles")))
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		run(t, "sh", "-n", filepath.Join(control, script))
		require.NotRegexp(t, `systemctl.*\b(enable|start|restart)\b|deb-systemd-helper|\brm -`, textOf(t, filepath.Join(control, script)), script)
	}

	s := newSystem(t)
	s.dpkg("-i", deb)
	require.Regexp(t, `(?m)^antipode:x:\d+:\d+:Antipode:/var/lib/antipode:/usr/sbin/nologin$`, textOf(t, s.at("etc/passwd")))
	group, err := strconv.Atoi(regexp.MustCompile(`(?m)^antipode:x:(\d+):`).FindStringSubmatch(textOf(t, s.at("etc/group")))[1])
	require.NoError(t, err)
	for _, dir := range []string{"etc/antipode", "etc/antipode/tls"} {
		info, err := os.Stat(s.at(dir))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o750), info.Mode().Perm(), dir)
		owner := info.Sys().(*syscall.Stat_t)
		require.Equal(t, []uint32{uint32(os.Getuid()), uint32(group)}, []uint32{owner.Uid, owner.Gid}, dir)
	}
	require.NoDirExists(t, s.at("etc/systemd/system"), "a service was enabled")
	for binary, prefix := range map[string]string{"usr/bin/antipode": "antipode", "usr/bin/antipodectl": "antipodectl"} {
		require.Equal(t, prefix+" version "+packageVersion+"\n", run(t, s.at(binary), "--version"))
	}
	t.Run("units", func(t *testing.T) { verifyUnits(t, s) })

	// An upgrade keeps what the operator has written.
	require.NoError(t, os.WriteFile(s.at("etc/default/antipode"), []byte("ANTIPODE_ARGS=--log-level info\n"), 0o644))
	s.dpkg("-i", deb)
	require.Contains(t, textOf(t, s.at("etc/default/antipode")), "info")

	key, data := s.at("etc/antipode/tls/node.key"), s.at("var/lib/antipode/north-1/VERSION")
	require.NoError(t, os.MkdirAll(filepath.Dir(data), 0o700))
	for _, file := range []string{key, data} {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}
	s.dpkg("-r", "antipode")
	require.NoFileExists(t, s.at("usr/bin/antipode"))
	require.FileExists(t, s.at("etc/default/antipode"))
	s.dpkg("-P", "antipode")
	require.NoFileExists(t, s.at("etc/default/antipode"))
	require.FileExists(t, key)
	require.FileExists(t, data)
	require.Contains(t, textOf(t, s.at("etc/passwd")), "antipode:", "the owner of the data that is left")
	require.NoError(t, os.RemoveAll(s.at("etc/antipode/tls/node.key")))
	require.NoError(t, os.RemoveAll(s.at("var/lib/antipode/north-1")))
	s.dpkg("-i", deb)
	s.dpkg("-P", "antipode")
	require.NoDirExists(t, s.at("etc/antipode"))
	require.NoDirExists(t, s.at("var/lib/antipode"))
}

// packagedFiles are the files of the package with modes and owners, without folders, the documents of documents,
// and manual pages.
var packagedFiles = []string{
	"-rw-r--r-- root/root ./etc/default/antipode",
	"-rw-r--r-- root/root ./usr/lib/systemd/system/antipode-dns.service",
	"-rw-r--r-- root/root ./usr/lib/systemd/system/antipode-gateway.service",
	"-rw-r--r-- root/root ./usr/lib/systemd/system/antipode-node@.service",
	"-rw-r--r-- root/root ./usr/lib/systemd/system/antipode-witness.service",
	"-rw-r--r-- root/root ./usr/lib/sysusers.d/antipode.conf",
	"-rw-r--r-- root/root ./usr/lib/tmpfiles.d/antipode.conf",
	"-rw-r--r-- root/root ./usr/share/bash-completion/completions/antipode",
	"-rw-r--r-- root/root ./usr/share/bash-completion/completions/antipodectl",
	"-rw-r--r-- root/root ./usr/share/doc/antipode/copyright",
	"-rw-r--r-- root/root ./usr/share/doc/antipode/examples/dns.yaml",
	"-rw-r--r-- root/root ./usr/share/doc/antipode/examples/gateway.yaml",
	"-rw-r--r-- root/root ./usr/share/doc/antipode/examples/north-1.yaml",
	"-rw-r--r-- root/root ./usr/share/doc/antipode/examples/witness.yaml",
	"-rw-r--r-- root/root ./usr/share/fish/vendor_completions.d/antipode.fish",
	"-rw-r--r-- root/root ./usr/share/fish/vendor_completions.d/antipodectl.fish",
	"-rw-r--r-- root/root ./usr/share/zsh/vendor-completions/_antipode",
	"-rw-r--r-- root/root ./usr/share/zsh/vendor-completions/_antipodectl",
	"-rwxr-xr-x root/root ./usr/bin/antipode",
	"-rwxr-xr-x root/root ./usr/bin/antipodectl",
}

// shippedDocument matches a document, which requireShipped checks: there are more than a hundred.
var shippedDocument = regexp.MustCompile(`^-rw-r--r-- root/root \./` + shippedAt + `/(docs/|deploy/|README\.md$)|^-rw-r--r-- root/root \./usr/share/man/man1/[a-z-]+\.1\.gz$`)

// listed are the lines of dpkg-deb -c for files other than documents, without sizes and times.
func listed(text string) (out []string) {
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		f := strings.Fields(line)
		if file := f[0] + " " + f[1] + " " + f[5]; f[0][0] != 'd' && !shippedDocument.MatchString(file) {
			out = append(out, file)
		}
	}
	slices.Sort(out)
	return out
}

// exposureMax is the exposure that systemd-analyze finds at most, times ten: 10 is the best that a service with network
// and a folder to write comes to.
const exposureMax = 20

// units are the units by name, that of the nodes with an instance.
var units = map[string]string{
	"antipode-node@north-1.service": "antipode-node@.service", "antipode-gateway.service": "antipode-gateway.service",
	"antipode-dns.service": "antipode-dns.service", "antipode-witness.service": "antipode-witness.service",
}

// verifyUnits has systemd read the units where the package has put them, with the binary that they start.
func verifyUnits(t *testing.T, s *system) {
	needs(t, "systemd-analyze", "cp")
	require.DirExists(t, "/lib/systemd/system")
	run(t, "cp", "-a", "--no-clobber", "/lib/systemd/system/.", s.at("usr/lib/systemd/system"))
	for name := range units {
		out := run(t, "systemd-analyze", "verify", "--root="+s.dir, "--man=no", "--recursive-errors=no", name)
		require.Empty(t, out, name)
	}
}

// The units are closed: systemd finds little exposure, each drains in its time, opens enough files, and a wrong
// threshold would be noticed.
//
// Capability: Deploy: systemd and a Debian package.
// Capability: Deploy: Time to stop.
func TestUnits(t *testing.T) {
	needs(t, "systemd-analyze")
	for name, file := range units {
		text := textOf(t, "systemd/"+file)
		run(t, "systemd-analyze", "security", "--offline=true", "--threshold="+strconv.Itoa(exposureMax), "systemd/"+file)
		for _, line := range []string{
			"User=antipode", "NoNewPrivileges=yes", "ProtectSystem=strict", "SystemCallFilter=@system-service", "Restart=on-failure", "LimitNOFILE=",
		} {
			require.Contains(t, text, "\n"+line, file)
		}
		seconds, err := strconv.Atoi(settingOf(t, text, "TimeoutStopSec"))
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Duration(seconds)*time.Second, drainRoom, file)
		require.Equal(t, name != "antipode-gateway.service", strings.Contains(text, "\nStateDirectory=antipode/"), file)
	}
	bare := filepath.Join(t.TempDir(), "bare.service")
	require.NoError(t, os.WriteFile(bare, []byte("[Service]\nExecStart=/bin/true\n"), 0o644))
	require.Error(t, exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--threshold="+strconv.Itoa(exposureMax), bare).Run())
}

func settingOf(t *testing.T, unit, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + `=(.*)$`).FindStringSubmatch(unit)
	require.NotNil(t, m, name)
	return m[1]
}

// What each unit starts is a command that exists, with the configuration file of that kind: the example beside it is
// good, and keeps its data in the folder that the unit lets it write.
//
// Capability: Deploy: systemd and a Debian package.
func TestUnitsStartTheirExamples(t *testing.T) {
	for name, file := range units {
		unit := textOf(t, "systemd/"+file)
		instance := regexp.MustCompile(`@(.*)\.`).FindStringSubmatch(name)
		words := strings.Fields(settingOf(t, unit, "ExecStart"))
		require.Equal(t, antipodePath, words[0])
		require.Equal(t, "$ANTIPODE_ARGS", words[len(words)-1], "of /etc/default/antipode")
		args := words[1 : len(words)-1]
		if instance != nil {
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "%i", instance[1])
			}
		}
		require.NoError(t, wellFormed(t, "antipode", args), file)
		require.Equal(t, "--config", args[1])
		example := filepath.Join("systemd/examples", filepath.Base(args[2]))
		kind := map[string][]string{"node": {}, "gateway": {"--gateway"}, "dns": {"--dns"}}[args[0]]
		if args[0] != "witness" { // `config check` knows no witness.yaml: the process refuses a bad one.
			run(t, binaries[antipodePath], slices.Concat([]string{"config", "check"}, kind, []string{example})...)
		}
		if strings.Contains(unit, "StateDirectory=") {
			state := settingOf(t, unit, "StateDirectory")
			if instance != nil {
				state = strings.ReplaceAll(state, "%i", instance[1])
			}
			require.Contains(t, textOf(t, example), "\ndata: /var/lib/"+state+"\n", file)
		}
	}
}

// The binaries need no later C library than the package asks for.
func TestPackageLibc(t *testing.T) {
	m := regexp.MustCompile(`libc6 \(>= 2\.(\d+)\)`).FindStringSubmatch(textOf(t, "package/nfpm.yaml"))
	require.NotNil(t, m)
	asked, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	for _, needed := range glibcOf(t, binaries[antipodePath]) {
		require.LessOrEqual(t, needed, asked, "GLIBC_2.%d", needed)
	}
}
