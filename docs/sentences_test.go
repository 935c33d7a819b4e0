package docs_test

import (
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A sentence of a comment has at most wordsMax words, and at most frontedMax if it opens with
// its object or a pronoun without a noun.
const (
	wordsMax   = 30
	frontedMax = 12
)

var (
	sentenceEnd = regexp.MustCompile(`[.:;?!][)"]?(\s|$)`)
	// fronted matches a clause or a pronoun in the place of the subject. A pronoun with its noun
	// ("One op is ...") or verb ("That holds because ...") is easy to read. So is "One of the ...".
	fronted = regexp.MustCompile(`^(What \S+|Of (an?|the|those|these|its|all|many|several|two|three|other|another)` +
		`|(One|Those) (that|which|who|whose|in|at|on|with|without|from|to|for|by|above|below|behind|before|after)` +
		`|One of (an?|another|no)|Those of` +
		`|That (an?|the|no|it|they|its|their|every|each|all|any|some|nobody|nothing|somebody|something)) `)
	listItem = regexp.MustCompile(`^\s+(-|\d+\.) `)
)

// hard returns the sentences of a comment that break the rule. Lines after a tab are
// diagrams, tables and code.
func hard(text string) []string {
	var paragraphs []string
	last := ""
	for _, line := range append(strings.Split(text, "\n"), "") {
		code := strings.HasPrefix(line, "\t")
		if code || strings.TrimSpace(line) == "" || listItem.MatchString(line) {
			paragraphs = append(paragraphs, last)
			last = ""
		}
		if !code {
			last += " " + listItem.ReplaceAllString(line, "")
		}
	}
	var out []string
	for _, paragraph := range append(paragraphs, last) {
		for _, s := range sentenceEnd.Split(strings.Join(strings.Fields(paragraph), " "), -1) {
			words := len(strings.Fields(s))
			if words > wordsMax || words > frontedMax && fronted.MatchString(s) {
				out = append(out, s)
			}
		}
	}
	return out
}

// Sentences in comments are short and begin with their subject. A package may have as many
// that are not rewritten as hardLeft has for it, and no fewer, so that the table shrinks.
func TestSentencesAreEasy(t *testing.T) {
	found := map[string][]string{}
	for _, file := range readTree(t, "..").files {
		if path.Ext(file) != ".go" || strings.HasSuffix(file, ".pb.go") {
			continue
		}
		fset := token.NewFileSet()
		at := filepath.FromSlash("../" + file)
		parsed, err := parser.ParseFile(fset, at, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, group := range parsed.Comments {
			for _, s := range hard(group.Text()) {
				dir := path.Dir(file)
				found[dir] = append(found[dir], fset.Position(group.Pos()).String()+": "+s)
			}
		}
	}
	for dir, sentences := range found {
		if n := len(sentences); n > hardLeft[dir] {
			t.Errorf("%s has %d sentences that are hard to read, hardLeft allows %d:\n%s",
				dir, n, hardLeft[dir], strings.Join(sentences, "\n"))
		}
	}
	for dir, left := range hardLeft {
		if n := len(found[dir]); n < left {
			t.Errorf("%s has %d sentences that are hard to read: lower hardLeft from %d", dir, n, left)
		}
	}
}

// The rule itself: what needs a second reading is found, what is fine is not.
func TestSentencesCheck(t *testing.T) {
	words := strings.Repeat("word ", wordsMax)
	for _, text := range []string{
		words + "more.",
		"Short. " + words + "more.",
		"What is left of the reserve is for flushes, compactions and trims, which make room.",
		"Of the others the newest one of each store is kept, and removed too once the disk is full.",
		"Those above half of size are kept and lent again, so that a stream leaves no garbage.",
		"One of a later version, whose second copy ends with its checksum as here, is refused.",
		"That a node has been silent for the whole of the last hour is no reason to stop.",
		"A list:\n  - What is left of the reserve is for flushes, compactions and trims and nothing else.",
	} {
		require.Len(t, hard(text), 1, text)
	}
	for _, text := range []string{
		words,
		words + "\n\n" + words,
		words[len("word "):] + "(R6). " + words,
		"\tstart " + words + words,
		"A list:\n  - " + words + "\n  - " + words,
		"What is left is for trims.",
		"That holds because the lock is held for as long as any of the readers is at work.",
		"One op is one 64 KiB message published, stored, delivered and acknowledged, with a full window.",
		"One of the nodes that hold the range answers, and all the others wait for it to finish.",
		"Of finds the protocol error in the chain, or the row for the error that a range answers.",
	} {
		require.Empty(t, hard(text), text)
	}
}
