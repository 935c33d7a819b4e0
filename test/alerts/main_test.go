package alerts

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"antipode/test/devproc"
)

func TestMain(m *testing.M) { os.Exit(devproc.Main(m)) }

// Where the files are, from here.
const (
	root   = "../.."
	deploy = root + "/deploy/prometheus"
)

// program returns the path of a program of Prometheus or Alertmanager, or skips the test.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is missing: apt-get install prometheus prometheus-alertmanager, as .ci/run does", name)
	}
	return path
}

// rule is a rule of a rule file, recording or alert.
type rule struct {
	Record      string            `yaml:"record,omitempty"`
	Alert       string            `yaml:"alert,omitempty"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

type group struct {
	Name     string `yaml:"name"`
	Interval string `yaml:"interval"`
	Rules    []rule `yaml:"rules"`
}

type ruleFile struct {
	Groups []group `yaml:"groups"`
}

// ruleFiles are the rule files of deploy, in the order of its configurations.
func ruleFiles() []string { return []string{"rules.yaml", "alerts.yaml"} }

// rules reads all rules.
func rules(t *testing.T) (all []rule) {
	t.Helper()
	for _, name := range ruleFiles() {
		var f ruleFile
		readYAML(t, filepath.Join(deploy, name), &f)
		for _, g := range f.Groups {
			all = append(all, g.Rules...)
		}
	}
	require.Greater(t, len(all), 30)
	return all
}

// readYAML reads a file, in which each field has to be one of into.
func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	require.NoError(t, d.Decode(into), file)
}
