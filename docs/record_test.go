package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// held is what a fault of TRACK_RECORD.md ends with: tests, seeds, or what else holds it; or that nothing does.
var held = regexp.MustCompile(": (`(Test|Fuzz|Benchmark|make )|seeds? \\d)|Tests?: |No test shows it")

// Every fault that was found names what fails without its fix.
func TestFoundFaultsNameTheirTests(t *testing.T) {
	text, err := os.ReadFile("TRACK_RECORD.md")
	require.NoError(t, err)
	faults := strings.Split(regexp.MustCompile(`\n +`).ReplaceAllString(string(text), " "), "\n- ")[1:]
	require.Greater(t, len(faults), 200)
	for _, fault := range faults {
		entry, _, _ := strings.Cut(fault, "\n")
		require.Regexp(t, held, entry, "what fails without the fix?")
	}
}
