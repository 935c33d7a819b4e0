package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// methodsMax bounds the methods of a type: with more it is two things.
const methodsMax = 40

// manyMethods are the types that have more, with how many they have. A number may only fall, and a type may only leave.
var manyMethods = map[string]int{
	"api.exchange":                      54,
	"api/blobs.call":                    165,
	"api/queues.call":                   44,
	"client/admin.Client":               61,
	"cmd/antipodectl.tool":              133,
	"directory.Directory":               73,
	"replication/receive.rangeReceiver": 45,
	"replication/ship.Shipper":          58,
	"server/cluster.Options":            50,
	"server/location.Location":          158,
	"server/operator.Backend":           44,
	"sim.Sim":                           217,
	"sim.history":                       98,
	"sim.location":                      47,
	"sim.member":                        91,
	"stamp.Stamp":                       64,
	"stamp/extent.Store":                79,
	"stamp/ranges.Machine":              61,
	"stamp/ranges.Range":                84,
	"stamp/ranges.Tx":                   79,
	"stamp/replica.Replica":             77,
	"stamp/seglog.Log":                  56,
	"test/faults/rig.Rig":               41,
}

// methodsOf counts the methods of each type of the module, without tests, by package and name.
func methodsOf(t *testing.T) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, s := range sources(t) {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", s.path), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				count[path.Dir(s.path)+"."+typeName(f.Recv.List[0].Type)]++
			}
		}
	}
	return count
}

// No type has more methods than one reads at once, but for those that have had them, which get no more.
func TestTypesHaveFewMethods(t *testing.T) {
	count := methodsOf(t)
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if have := count[name]; have > methodsMax {
			require.LessOrEqual(t, have, max(methodsMax, manyMethods[name]), "%s has too many methods: move some to a type that owns what they use", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(manyMethods)) {
		require.Greater(t, count[name], methodsMax, "%s is below the bound now: take it off the list", name)
		require.Equal(t, count[name], manyMethods[name], "%s has fewer methods now: lower its number", name)
	}
}
