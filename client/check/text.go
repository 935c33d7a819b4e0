package check

import (
	"regexp"
	"strings"
)

// OneLine is an error for people, in one line: without the names of calls between processes, what gRPC puts around an error, and
// the words of the protocol for a server that is busy. Servers pass on what their libraries and each other have in their errors.
func OneLine(text string) string {
	text = blanks.ReplaceAllString(lines.ReplaceAllString(strings.TrimSpace(text), "; "), " ")
	text = dialError.ReplaceAllString(rpcError.ReplaceAllString(text, ""), "$1")
	return plain.Replace(callName.ReplaceAllString(text, "$1"))
}

var (
	// lines are where one error of several ends; a line that is indented goes on with one.
	lines     = regexp.MustCompile(`[;\s]*\n\b`)
	blanks    = regexp.MustCompile(`\s+`)
	rpcError  = regexp.MustCompile(`rpc error: code = \w+ desc = `)
	dialError = regexp.MustCompile(`connection error: desc = "transport: (?:Error while dialing: )?([^"]*)"`)
	callName  = regexp.MustCompile(`\b(?:(?:confirm|directory|link)\.[A-Z]\w+|(?:admin|stamp)\.[a-z]\w{3,})(?:: | (at ))`)

	plain = strings.NewReplacer( //nolint:gochecknoglobals // A table.
		"authentication handshake failed: context deadline exceeded", "no answer in time",
		"context deadline exceeded", "no answer in time",
		"ServerBusy: The server is currently unable to receive requests. Please retry your request.", "it is busy, and is asked again",
		"ServerBusy: ", "",
	)
)
