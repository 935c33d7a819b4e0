package conformance

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testCase is one case of Appendix A. No two share a table, and that of a case is not there yet.
type testCase struct {
	number int
	name   string
	run    func(*rig)
}

// cases are all cases, grouped as the appendix orders them.
func cases() (all []testCase) {
	for _, group := range [][]testCase{
		tableCases(), keyCases(), propertyCases(), typeCases(), writeCases(), conditionCases(), queryCases(), filterCases(), optionCases(),
		pageCases(), transactionCases(), batchCases(), versionCases(), signatureCases(), sharedCases(), secondaryCases(),
	} {
		all = append(all, group...)
	}
	return all
}

// Every case of Appendix A of docs/protocol/table.md, at the primary and, as far as it reads, at
// the secondary.
//
// Capability: Clients: Conformance of tables.
func TestTableConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("two locations are started twice")
	}
	s := newSuite(t)
	for _, c := range cases() {
		t.Run(fmt.Sprintf("%02d %s", c.number, c.name), func(t *testing.T) {
			t.Parallel()
			r := s.rig(t, c.number)
			c.run(r)
			r.settled()
		})
	}
}

// The cases are those of the appendix, each once and in its order.
//
// Capability: Clients: Conformance of tables.
func TestEveryCaseIsTested(t *testing.T) {
	text, err := os.ReadFile("../../docs/protocol/table.md")
	require.NoError(t, err)
	appendix := regexp.MustCompile(`(?s)## Appendix A\..*?\n## Appendix B\.`).Find(text)
	var want, got []int
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllSubmatch(appendix, -1) {
		n, err := strconv.Atoi(string(row[1]))
		require.NoError(t, err)
		want = append(want, n)
	}
	require.Len(t, want, 86)
	names := map[string]int{}
	for _, c := range cases() {
		got = append(got, c.number)
		require.Zero(t, names[c.name], "%d has the name of another one: %s", c.number, c.name)
		names[c.name] = c.number
	}
	require.Equal(t, want, got)
}
