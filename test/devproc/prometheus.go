package devproc

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// ErrNoPrometheus: there is no Prometheus on this machine. Debian's package is prometheus.
var ErrNoPrometheus = errors.New("devproc: prometheus is not installed (apt-get install prometheus)")

// Prometheus is a running one. It must be stopped.
type Prometheus struct {
	*Child
	v1.API
	// URL is its address.
	URL string
}

// StartPrometheus runs, at a port that h holds, a Prometheus with a configuration, whose relative paths are those of dir; its data is in dir. It
// returns at once: the first answers are errors.
func StartPrometheus(h Holder, dir, configuration string) (*Prometheus, error) {
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		return nil, ErrNoPrometheus
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		return nil, err
	}
	ports, err := FreePorts(h, 1)
	if err != nil {
		return nil, err
	}
	address := loopbackAddress(ports[0])
	child, err := Run("prometheus", filepath.Join(dir, "prometheus.log"), binary, "--config.file", file,
		"--storage.tsdb.path", filepath.Join(dir, "tsdb"), "--web.listen-address", address)
	if err != nil {
		return nil, err
	}
	client, err := api.NewClient(api.Config{Address: "http://" + address, Client: NewHTTPClient()})
	if err != nil {
		return nil, errors.Join(err, child.Kill9())
	}
	return &Prometheus{child, v1.NewAPI(client), "http://" + address}, nil
}
