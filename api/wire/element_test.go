package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"antipode/services/storageerr"
)

// utf16Of is a document as UTF-16 with a byte order mark.
func utf16Of(s string, order binary.AppendByteOrder) []byte {
	b := order.AppendUint16(nil, 0xfeff)
	for _, u := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, u)
	}
	return b
}

// A document is the same in UTF-8 with a mark and without, and in UTF-16 of either order; comments, CDATA and
// references are text of their element.
//
// Capability: Queues: Hostile clients of queues.
func TestParseElement(t *testing.T) {
	const doc = "<?xml version='1.0' encoding='X'?>\n<!-- c --><a x='1'>\n <b> 1<![CDATA[<&>]]>2&lt;&#xD;&#x1F600;é\r\n</b><n:c xmlns:n='u'/>\n</a>\n"
	named := func(charset string) string { return strings.Replace(doc, "X", charset, 1) }
	for name, b := range map[string][]byte{
		"plain": []byte(named("utf-8")), "upper": []byte(named("UTF-8")), "mark": []byte("\ufeff" + named("utf-8")),
		"none":   []byte(strings.Replace(doc, " encoding='X'", "", 1)),
		"little": utf16Of(named("utf-16"), binary.LittleEndian), "big": utf16Of(named("UTF-16"), binary.BigEndian),
		"another": utf16Of(named("utf-8"), binary.BigEndian),
	} {
		root, err := ParseElement(b)
		require.NoError(t, err, name)
		require.Equal(t, "a", root.Name)
		require.Len(t, root.Children, 2)
		require.Equal(t, &Element{Name: "b", Text: " 1<&>2<\r\U0001F600é\n"}, root.Child("b"), name)
		require.NoError(t, root.Container("b", "c"))
		require.Error(t, root.Container("b"))
		_, err = root.Leaf()
		require.Error(t, err)
	}
	for _, b := range []string{"", " ", "<a>", "<a></b>", "<a/><a/>", "<a/>x", "<!DOCTYPE a><a/>", "<a>&b;</a>", "\xff\xfea", "\xfe\xff\xd8\x00\x00a", named("latin1")} {
		_, err := ParseElement([]byte(b))
		require.ErrorIs(t, err, storageerr.InvalidXMLDocument, "%q", b)
	}
	refersTo := func(ref string) error {
		_, err := ParseElement([]byte("<a>x" + ref + "\ufffd</a>"))
		return err
	}
	for _, half := range []rune{0xd800, 0xd9ab, 0xdbff, 0xdc00, 0xdfff} {
		for _, form := range []string{"&#x%x;", "&#x%X;", "&#x00%x;", "&#%d;", "&#00%d;"} {
			require.ErrorIs(t, refersTo(fmt.Sprintf(form, half)), storageerr.InvalidXMLDocument, "%x %s", half, form)
		}
		require.NoError(t, refersTo(fmt.Sprintf("<![CDATA[&#%d;]]><!--&#%d;-->", half, half)))
	}
	for _, ref := range []string{"&#xd7ff;", "&#55295;", "&#xe000;", "&#57344;", "&#xfffd;", "&#x1d800;", "&amp;#xd800;", "&#555296;"} {
		require.NoError(t, refersTo(ref), ref)
	}
	nested := func(n int) []byte { return []byte(strings.Repeat("<a>", n) + strings.Repeat("</a>", n)) }
	_, err := ParseElement(nested(depthMax))
	require.NoError(t, err)
	_, err = ParseElement(nested(depthMax + 1))
	require.ErrorIs(t, err, storageerr.InvalidXMLDocument)
	wide := func(n int) []byte { return []byte("<a>" + strings.Repeat("<b/>", n) + "</a>") }
	_, err = ParseElement(wide(elementsMax - 1))
	require.NoError(t, err)
	_, err = ParseElement(wide(elementsMax))
	require.ErrorIs(t, err, storageerr.InvalidXMLDocument)
}

// Whatever text a document carries comes back after it was written by AppendXML, and every other input is an error of
// the protocol.
func FuzzParseElement(f *testing.F) {
	for _, s := range []string{"", "a", "<a/>", "\r\n\t ", "\ufeff<a>b</a>", "\xff\xfe<\x00a\x00/\x00>\x00", "]]>", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		root, err := ParseElement(b)
		if err != nil {
			var e *storageerr.Error
			require.True(t, errors.As(err, &e))
			return
		}
		again, err := ParseElement(AppendElement(nil, "a", root.Text))
		require.NoError(t, err)
		require.Equal(t, root.Text, again.Text)
	})
}
