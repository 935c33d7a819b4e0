package auth

import (
	"crypto/sha256"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/geo"
)

// A wrong signature costs eight hashes at most, however many ways the request could have
// been signed in, and with both keys.
func TestWrongSignatureCostsEightHashes(t *testing.T) {
	for _, line := range []string{
		"PUT /devstoreaccount1-secondary/q?x=&comp=metadata", "GET /devstoreaccount1-secondary/T(PartitionKey='a',RowKey=%27b%27)?comp=",
	} {
		for _, service := range []geo.Service{geo.Queue, geo.Table} {
			for _, headers := range [][]string{
				{"x-ms-version: 2014-02-14", "Content-Length: 0", "x-ms-meta-a1: v  w", "x-ms-meta-a_1: u"},
				{"Content-Length: 0", "x-ms-meta-a1: v  w", "x-ms-meta-a_1: u"},
				{},
			} {
				for _, keys := range []Keys{{Key1: []byte("one"), Key2: []byte("two")}, {Key2: []byte("two")}, {Key1: []byte("one"), Key2: []byte("one")}} {
					r := read(t, line, hostPathStyle, append(headers, msDate)...)
					r.Header.Set("x-ms-meta-long", strings.Repeat("x", 20<<10))
					target, err := protocol.ParseTarget(service, "http", r.Host, r.RequestURI, hostZones...)
					require.NoError(t, err)
					q, err := protocol.ParseQuery(target.RawQuery)
					require.NoError(t, err)
					m := messageOf(r, target, q, protocol.Version(r.Header.Get("x-ms-version")), sharedKey)
					s := new(scratch)
					s.text = s.append(nil, &m, 0)
					var mac [sha256.Size]byte
					require.False(t, s.signed(&mac, keys))
					_, ok := testVerifier().matchOther(s, &m, &mac, keys)
					require.False(t, ok)
					require.LessOrEqual(t, s.hashes, 8)
					require.GreaterOrEqual(t, s.hashes, keys.count())
				}
			}
		}
	}
}

// Of two ways in which clients may differ each combination is tried with both keys, of
// three with one; of more, each alone as far as the bound goes, and all together.
func TestCandidates(t *testing.T) {
	const five variant = byteSorted | noEmptyParams | noSuffix | noZeroLength | spacesCollapsed
	require.Empty(t, variant(0).candidates(3))
	require.Equal(t, []variant{byteSorted, noEmptyParams, byteSorted | noEmptyParams}, (byteSorted | noEmptyParams).candidates(3))
	require.Len(t, (byteSorted | noEmptyParams | noSuffix).candidates(7), 7)
	require.Equal(t, []variant{five, noSuffix, byteSorted}, five.candidates(3))
	require.Equal(t, []variant{five, noSuffix, byteSorted, noEmptyParams, spacesCollapsed, noZeroLength}, five.candidates(7))
	for possible := range variant(1 << 9) {
		for _, n := range []int{3, 7} {
			got := possible.candidates(n)
			require.LessOrEqual(t, len(got), n)
			for i, way := range got {
				require.NotZero(t, way)
				require.Zero(t, way&^possible)
				require.NotEqual(t, quotesEncoded|quotesRaw, way&(quotesEncoded|quotesRaw))
				require.NotContains(t, slices.Delete(slices.Clone(got), i, i+1), way)
			}
			if bits.OnesCount16(uint16(possible)) == 1 {
				require.Equal(t, []variant{possible}, got)
			}
		}
	}
}
