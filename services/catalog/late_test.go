package catalog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseWhenLate(t *testing.T) {
	for name, want := range map[string]WhenLate{"alert": LateAlert, "slow": LateSlow, "refuse": LateRefuse} {
		got, err := ParseWhenLate(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, name, got.String())
	}
	for _, bad := range []string{"", "Slow", "stop"} {
		_, err := ParseWhenLate(bad)
		require.ErrorContains(t, err, "alert, slow or refuse")
	}
}
