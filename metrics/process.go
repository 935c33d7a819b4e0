package metrics

import (
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// registerBuild registers antipode_build_info.
func registerBuild(reg prometheus.Registerer) {
	version, revision, goVersion := "unknown", "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version, goVersion = info.Main.Version, info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: nameBuild, Help: "1; the labels have the version of the build, the revision of its source and the version of Go.",
		ConstLabels: prometheus.Labels{labelVersion: version, labelRevision: revision, labelGoVersion: goVersion},
	})
	build.Set(1)
	reg.MustRegister(build)
}

// RegisterCertificate registers antipode_certificate_not_after_timestamp_seconds. notAfter is called at each scrape, and
// is the end of the certificate in use.
func RegisterCertificate(reg prometheus.Registerer, notAfter func() time.Time) error {
	return register(reg, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: nameCertificate,
		Help: "When the certificate that the process shows to other processes expires, Unix seconds.",
	}, func() float64 { return float64(notAfter().Unix()) }))
}
