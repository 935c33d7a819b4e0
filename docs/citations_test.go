package docs_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// foreignFiles are files of other projects that comments name.
var foreignFiles = []string{"jetstream/pull.go", "jetstream_errors_generated.go", "publisher.go", "rpc.proto"}

// section matches one section number, as citations and headings write it: 4.2, B12, A.74.
const section = `(?:[A-Z]\.?)?\d+(?:\.\d+)*`

var (
	// sections finds a list of section numbers that follows the name of a document.
	sections = regexp.MustCompile(`^(?: sections?)? (` + section + `(?:(?:, and |, | and | to )` + section + `)*)`)
	// protocolPage and designPage find the name of a document that has sections.
	protocolPage = regexp.MustCompile(`\b((?:\w+/)*)(blob|table|queue|auth|service)\.md`)
	designPage   = regexp.MustCompile(`\bDESIGN(?:\.md)?`)
	ruleCited    = regexp.MustCompile(`\bR([1-9]\d*)\b`)
	invariant    = regexp.MustCompile(`(?i)\binvariants? (\d+(?:(?:, and |, | and | to )\d+)*)`)
	oneSection   = regexp.MustCompile(section)
	// unheld finds citations of what the repository does not hold.
	unheld = regexp.MustCompile(`(?i)\bspec/\w+|\bSTYLE(\.md)? (section )?\d|\bdone[- ]when\b|\bissues? \d+\b`)
	// fileCited finds the name of a file in a comment.
	fileCited = regexp.MustCompile(`[\w/.*{},-]*\w\.(?:go|md|proto|golden|txt|yaml|sh|mjs|cjs)\b`)
	heading   = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	row       = regexp.MustCompile(`(?m)^\| (\d+) \|`)
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notSlug   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// reference is what the cited documents define.
type reference struct {
	tree *tree
	// pages has the section numbers of DESIGN.md and of the protocol references, by file.
	pages map[string]map[string]bool
}

func readReference(t *testing.T) *reference {
	t.Helper()
	ref := &reference{tree: readTree(t, ".."), pages: map[string]map[string]bool{}}
	files, err := filepath.Glob("protocol/*.md")
	require.NoError(t, err)
	for _, file := range append(files, "DESIGN.md") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		ref.pages[filepath.ToSlash(file)] = sectionsOf(string(text))
	}
	return ref
}

// sectionsOf returns the numbers that headings begin with or name, and the rows of
// appendix A as A.1, A.2.
func sectionsOf(text string) map[string]bool {
	out := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		// A heading may name several, as "### 7. C10 List Blobs" and "### B29/B30 Immutability".
		for _, word := range strings.FieldsFunc(h[1], func(r rune) bool { return strings.ContainsRune(" /:,()", r) }) {
			out[strings.TrimSuffix(word, ".")] = true
		}
		if n, found := strings.CutPrefix(h[1], "Invariant "); found {
			out["invariant "+n] = true
		}
	}
	_, appendix, _ := strings.Cut(text, "\n## Appendix A.")
	appendix, _, _ = strings.Cut(appendix, "\n## ")
	for _, r := range row.FindAllStringSubmatch(appendix, -1) {
		out["A."+r[1]] = true
	}
	return out
}

// check returns the citations in a text that name nothing.
func (ref *reference) check(text string) []string {
	var wrong []string
	for _, m := range unheld.FindAllString(text, -1) {
		wrong = append(wrong, m+": the repository does not hold it")
	}
	for _, m := range ruleCited.FindAllStringSubmatch(text, -1) {
		if !ref.pages["DESIGN.md"]["R"+m[1]] {
			wrong = append(wrong, "there is no rule R"+m[1])
		}
	}
	for _, m := range invariant.FindAllStringSubmatch(text, -1) {
		for _, n := range oneSection.FindAllString(m[1], -1) {
			if !ref.pages["DESIGN.md"]["invariant "+n] {
				wrong = append(wrong, "there is no invariant "+n)
			}
		}
	}
	for _, at := range protocolPage.FindAllStringSubmatchIndex(text, -1) {
		dir, page := text[at[2]:at[3]], "protocol/"+text[at[4]:at[5]]+".md"
		switch dir {
		case "protocol/", "docs/protocol/", "":
			wrong = append(wrong, ref.checkSections(page, text[at[1]:])...)
		case "format/", "docs/format/":
		default:
			wrong = append(wrong, "there is no "+text[at[0]:at[1]])
		}
	}
	for _, at := range designPage.FindAllStringIndex(text, -1) {
		wrong = append(wrong, ref.checkSections("DESIGN.md", text[at[1]:])...)
	}
	return wrong
}

// checkSections looks up the section numbers that follow the name of a page.
func (ref *reference) checkSections(page, rest string) []string {
	m := sections.FindStringSubmatch(rest)
	if m == nil {
		return nil
	}
	var wrong []string
	for _, s := range oneSection.FindAllString(m[1], -1) {
		if !ref.pages[page][s] {
			wrong = append(wrong, fmt.Sprintf("%s has no section %s", page, s))
		}
	}
	return wrong
}

// checkFiles returns the files that a comment names and that do not exist.
func (ref *reference) checkFiles(text string) []string {
	var wrong []string
	for _, file := range fileCited.FindAllString(text, -1) {
		if slices.Contains(foreignFiles, file) || slices.Contains(notOurs, file) || strings.HasPrefix(file, "//") {
			continue
		}
		if miss := ref.tree.checkFile(strings.Replace(file, "testdata", "*/testdata", 1)); miss != "" && ref.tree.checkFile(file) != "" {
			wrong = append(wrong, miss)
		}
	}
	return wrong
}

// comments returns the comments of a Go file, each on one line.
func comments(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	var out []string
	for _, group := range parsed.Comments {
		out = append(out, strings.Join(strings.Fields(group.Text()), " "))
	}
	return out
}

// texts are files beside Go and documents whose comments cite: scripts, configurations, scenarios.
var texts = []string{".txt", ".yaml", ".sh", ".proto", ".mjs", ".cjs", ""}

// Every citation in comments and documents resolves: rules and invariants in DESIGN.md,
// sections of DESIGN.md and of the protocol references, files. So a reader who has only the
// repository can follow each of them.
func TestCitationsResolve(t *testing.T) {
	ref := readReference(t)
	for _, file := range ref.tree.files {
		at := filepath.FromSlash("../" + file)
		switch ext := path.Ext(file); {
		case file == "docs/citations_test.go" || isFolder(t, at):
		case ext == ".go":
			for _, c := range comments(t, at) {
				for _, wrong := range append(ref.check(c), ref.checkFiles(c)...) {
					t.Errorf("%s: %s: %.80s", file, wrong, c)
				}
			}
		case ext == ".md" || slices.Contains(texts, ext) && !strings.HasPrefix(file, "test/npm/"):
			text, err := os.ReadFile(at)
			require.NoError(t, err)
			for _, wrong := range ref.check(joined(string(text))) {
				t.Errorf("%s: %s", file, wrong)
			}
		}
	}
}

func isFolder(t *testing.T, file string) bool {
	t.Helper()
	info, err := os.Stat(file)
	require.NoError(t, err)
	return info.IsDir()
}

// joined returns a text as one line, without the marks of comments at line starts.
func joined(text string) string {
	var words []string
	for _, line := range strings.Split(text, "\n") {
		words = append(words, strings.Fields(strings.TrimLeft(line, "#/ \t"))...)
	}
	return strings.Join(words, " ")
}

// Every link in a document leads to a file, and to a heading of it where it names one.
func TestLinksResolve(t *testing.T) {
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		body := fence.ReplaceAllString(string(text), "")
		for _, m := range link.FindAllStringSubmatch(body, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := file
			if target != "" {
				to = filepath.Join(filepath.Dir(file), filepath.FromSlash(target))
			}
			linked, err := os.Stat(to)
			if err != nil {
				t.Errorf("%s: the link to %s leads nowhere", file, m[1])
				continue
			}
			if anchor != "" && (linked.IsDir() || !slices.Contains(anchors(t, to), anchor)) {
				t.Errorf("%s: there is no heading %s", file, m[1])
			}
		}
	}
}

// anchors returns the anchors of a document's headings.
func anchors(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var out []string
	for _, h := range heading.FindAllStringSubmatch(string(text), -1) {
		out = append(out, strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return out
}

// The check itself: citations of each kind that resolve pass, and others do not.
func TestCitationCheck(t *testing.T) {
	ref := readReference(t)
	for _, text := range []string{
		"(R5, R22; invariant 1, invariants 2 and 6)", "DESIGN section 9", "DESIGN 2.6", "protocol/blob.md B10, 10.2", "docs/protocol/table.md 4.2 to 4.6",
		"protocol/table.md 2.1, 3, 14.1, A.74, A.78", "docs/format/blob.md", "protocol/auth.md 25, negative tests", "table.md 12", "Invariant: Seq is dense",
	} {
		require.Empty(t, ref.check(text), text)
	}
	for _, text := range []string{
		"R23", "invariant 9", "invariants 2 and 10", "DESIGN section 11", "DESIGN 2.9", "protocol/blob.md B99", "protocol/table.md 4.2, 4.99", "protocol/table.md A.999",
		"spec/table.md 4", "STYLE section 6", "Done-when 3", "issue 4", "other/blob.md 1",
	} {
		require.NotEmpty(t, ref.check(text), text)
	}
	for _, file := range []string{"docs/format/keys.md", "senders.go", "testdata/answers.txt", "stamp/keys/testdata/keys.golden"} {
		require.Empty(t, ref.checkFiles("see "+file+"."), file)
	}
	require.NotEmpty(t, ref.checkFiles("see nothing.go"))
}
