package catalog

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/keys"
)

// The stored form of properties and of policies never changes (docs/format/catalog.md).
func TestStoredProperties(t *testing.T) {
	p := &Properties{
		Logging:     &Logging{Format: "1.0", Delete: true, Retention: Retention{7}},
		HourMetrics: &Metrics{Enabled: true, APIs: true, Retention: Retention{365}}, MinuteMetrics: &Metrics{},
		CORS:           []CORSRule{{Origins: []string{"*"}, Methods: []string{"GET"}, MaxAge: 5, Exposed: []string{"x-*"}, Allowed: []string{"y"}}},
		DefaultVersion: "2013-08-15",
	}
	const stored = `{"v":1,"logging":{"format":"1.0","delete":true,"retention":{"days":7}},` +
		`"hour_metrics":{"enabled":true,"apis":true,"retention":{"days":365}},"minute_metrics":{"retention":{}},` +
		`"cors":[{"origins":["*"],"methods":["GET"],"max_age":5,"exposed":["x-*"],"allowed":["y"]}],"default_version":"2013-08-15"}`
	b, err := p.encode()
	require.NoError(t, err)
	require.Equal(t, stored, string(b))
	again, err := ParseProperties([]byte(stored))
	require.NoError(t, err)
	require.Equal(t, p, again)
	_, err = ParseProperties([]byte(`{"v":2}`))
	require.ErrorContains(t, err, "version 2")

	c := &Container{Name: "q", Epoch: 1, Created: 2, Modified: 3, Policies: []Policy{{ID: "a", Start: "s", Expiry: "e", Permission: "r"}, {ID: "b"}}}
	b, err = c.encode()
	require.NoError(t, err)
	require.Equal(t, `{"v":1,"name":"q","epoch":1,"created":2,"modified":3,"policies":[{"id":"a","start":"s","expiry":"e","permission":"r"},{"id":"b"}]}`, string(b))
}

// Properties stand among the containers of their service, in front of all names, so that what copies, compares or deletes
// those does so with the properties (R17).
func TestPropertiesAreAmongContainers(t *testing.T) {
	for _, s := range []geo.Service{geo.Blob, geo.Queue, geo.Table} {
		key := PropertiesKey(s, "acct")
		require.True(t, len(key) > 0 && string(key[:len(ContainersPrefix(s, "acct"))]) == string(ContainersPrefix(s, "acct")))
		require.Less(t, string(key), string(ContainerPartition(s, "acct", "\x00").Append(nil)))
		p, row, err := keys.ParsePartition(key)
		require.NoError(t, err)
		require.True(t, IsProperties(p))
		require.Equal(t, propertiesRow, string(row))
		require.False(t, IsProperties(ContainerPartition(s, "acct", "a")))
	}
	require.False(t, IsProperties(AccountPartition("acct")))
}
