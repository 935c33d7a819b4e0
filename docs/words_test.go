package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// oldWord is a word that the glossary replaces.
type oldWord struct {
	word string
	// stems are the texts of which one is in every form, for a fast look.
	stems string
	// forms is a pattern of the word's forms in lower case.
	forms string
}

// oldWords are matched with texts in lower case; identifiers are split first: tellLeads
// into "tell leads".
var oldWords = []oldWord{
	{"anew", "anew", `anew`},
	{"carrier", "carrier", `carriers?`},
	{"condemn", "condemn", `condemn\w*`},
	{"door", "door", `(front ?)?doors?`},
	{"engine", "engine", `engines?`},
	{"front", "front", `fronts?`},
	{"hand", "hand", `hands?|handed|handing`},
	{"hear", "hear", `hears?|hearing|heard`},
	{"invariants", "invariants", `internal/invariants`},
	{"judge", "judg", `judg(e|es|ed|ing|ement|ements|ment)`},
	{"liar", "liar lie lying", `liars?|lied|lying|lies? (to|about)|(may|might|can|must|could|never|not|that|who|which|it|they|he) lies?|a lie|lie`},
	{"note", "not", `noted|noting|notes (that|how|what|which|why|it|an?|the|when)`},
	{"obey", "obey", `obey\w*`},
	{"of its own", "own", `of (its|their|our|his) own`},
	{"order", "order", `(takes?|gives?|taking|giving|operators?|operators'|operator's|link|these|such) orders?|orders? of (an|the) operator`},
	{"piece", "piece", `pieces?`},
	{"reign", "reign", `reigns?`},
	{"rot", "rot", `rots?|rotten|rotted|rotting`},
	{"says that", "sa", `(says?|said|saying) that`},
	{"scrub pass", "pass", `(scrub|scrubber's|collection|sweep|upkeep|walk) pass(es)?`},
	{"strike", "str", `strikes?|struck`},
	{"supersede", "supersed", `supersed\w*`},
	{"tap", "tap", `taps?|tapped|tapping`},
	{"tell", "tell told", `tells?|telling|told`},
	{"tend", "tend", `tends?|tended|tending`},
	{"verdict", "verdict", `verdicts?`},
	{"where there is none", "there", `where there (is|are|was|were) (none|no one)`},
	{"whoever", "ever nobody", `whoever|whomever|nobody of`},
}

// honest are phrases in which an old word is right.
var honest = map[string]string{
	`front[- ]ends?|frontends?`:                                      "the field's term for a server's HTTP side",
	`(in|at the) front( of)?|the front of|front \*?element`:          "a place in a sequence",
	`by hand|(on the )?other hand|(first|second|left|right)[- ]hand`: "English",
	`lies? (in|at|on|outside|inside|within|below|above|between|ahead|there|beside|behind|off|where)|from where (it|they) lies?`: "a place",
	`of (its|their|our|his) own [a-z]+`: "with a noun behind it",
	`at hand`:                           "English",
	`not[- ]heard`:                      "the reason of R13",
	`storage engines?|search engines?|the sql engine`: "the field's term",
}

// exceptions are files in which an old word stays, with the reason.
var exceptions = map[string]string{
	"LICENSE":                             "its text is not ours",
	"docs/GLOSSARY.md":                    "it lists the old words",
	"docs/words_test.go":                  "it lists the old words",
	"internal/identity/former.go":         "old certificates have the old word",
	"internal/identity/former_test.go":    "old certificates have the old word",
	"cmd/antipode/former.go":              "the command of former versions",
	"server/listen/conns.go":              "Front is a method of container/list",
	"stamp/transport/snapshots.go":        "SnapshotPiece is the name in the wire's schema",
	"stamp/transport/wire/stamp.proto":    "SnapshotPiece and piece are names of the wire's schema",
	"docs/runs/2026-11-22-stress-1000.md": "the printed counts of one run, as they were",
}

// compiled pairs an old word with its pattern. A text in lower case that holds none of the
// stems cannot match, which is much faster to see.
type compiled struct {
	word  string
	stems []string
	re    *regexp.Regexp
}

func (c compiled) find(text string) string {
	if !slices.ContainsFunc(c.stems, func(s string) bool { return strings.Contains(text, s) }) {
		return ""
	}
	return c.re.FindString(text)
}

func compile() (words []compiled, clear *regexp.Regexp) {
	for _, o := range oldWords {
		words = append(words, compiled{o.word, strings.Fields(o.stems), regexp.MustCompile(`\b(` + o.forms + `)\b`)})
	}
	return words, regexp.MustCompile(`\b(` + strings.Join(slices.Sorted(maps.Keys(honest)), "|") + `)\b`)
}

// splitName returns the words of an identifier in lower case: "tell leads" of tellLeads.
func splitName(name string) string {
	var b strings.Builder
	var last rune
	for _, r := range name {
		if r == '_' || unicode.IsUpper(r) && !unicode.IsUpper(last) {
			b.WriteByte(' ')
		}
		if r != '_' {
			b.WriteRune(unicode.ToLower(r))
		}
		last = r
	}
	return strings.TrimSpace(b.String())
}

// speech returns all that a Go file says: comments, identifiers, string literals.
func speech(t *testing.T, file string) []string {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	var out []string
	for _, group := range parsed.Comments {
		out = append(out, strings.Join(strings.Fields(group.Text()), " "))
	}
	names := map[string]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			names[n.Name] = true
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
				out = append(out, text)
			}
		}
		return true
	})
	for name := range names {
		out = append(out, splitName(name))
	}
	return append(out, path.Base(filepath.ToSlash(file)))
}

// The old words of the glossary are gone from comments, names, strings and documents.
func TestOldWords(t *testing.T) {
	tr := readTree(t, "..")
	words, clear := compile()
	for _, file := range tr.files {
		at := filepath.FromSlash("../" + file)
		ext := path.Ext(file)
		if exceptions[file] != "" || isFolder(t, at) || strings.HasPrefix(file, "docs/protocol/") || strings.HasPrefix(file, "test/npm/") {
			continue
		}
		var texts []string
		switch {
		case ext == ".go":
			if strings.HasSuffix(file, ".pb.go") {
				continue
			}
			texts = speech(t, at)
		case slices.Contains([]string{".md", ".txt", ".golden", ".yaml", ".sh", ".proto", ""}, ext) && file != "go.sum":
			text, err := os.ReadFile(at)
			require.NoError(t, err)
			texts = []string{joined(string(text)), path.Base(file)}
		}
		for _, text := range texts {
			text = clear.ReplaceAllString(strings.ToLower(text), " ")
			for _, w := range words {
				if m := w.find(text); m != "" {
					t.Errorf("%s: %q (not: %s): %.100s", file, strings.TrimSpace(m), w.word, around(text, m))
				}
			}
		}
	}
}

// around returns the text from shortly before a match on.
func around(text, match string) string {
	at := strings.Index(text, match)
	return text[max(0, at-40):]
}

// Every word that the glossary rules out is looked for, and no other.
func TestGlossary(t *testing.T) {
	text, err := os.ReadFile("GLOSSARY.md")
	require.NoError(t, err)
	body := strings.Join(strings.Fields(string(text)), " ")
	_, body, _ = strings.Cut(body, "## Places")
	words, _ := compile()
	looked := map[string]bool{}
	for _, m := range regexp.MustCompile(`[Nn]ot: ([^.]+)\.`).FindAllStringSubmatch(body, -1) {
		for _, old := range strings.Split(m[1], ", ") {
			old, _, _ = strings.Cut(old, " (")
			matched := false
			for _, w := range words {
				if w.find(old) != "" || w.word == old {
					looked[w.word], matched = true, true
				}
			}
			require.True(t, matched, fmt.Sprintf("nothing looks for %q", old))
		}
	}
	for _, w := range words {
		require.True(t, looked[w.word], fmt.Sprintf("the glossary does not say what replaces %q", w.word))
	}
}

// The check itself: an old word is found in names and sentences, honest English is not.
func TestOldWordsCheck(t *testing.T) {
	words, clear := compile()
	finds := func(text string) bool {
		text = clear.ReplaceAllString(strings.ToLower(text), " ")
		return slices.ContainsFunc(words, func(w compiled) bool { return w.find(text) != "" })
	}
	for _, text := range []string{splitName("tellLeads"), splitName("Front"), splitName("throughDoor"), "a frontdoor process", "it is done anew.", "(heard)", "the carrier's store"} {
		require.True(t, finds(text), text)
	}
	for _, text := range []string{"HTTP front end", "edited by hand", "the range lies in the span", "the scheduler's pass", splitName("Handler"), splitName("footnote"), "orders streams by account", splitName("Foretold")} {
		require.False(t, finds(text), text)
	}
}
