package auth

import (
	"cmp"
	"strings"
)

// Header names are sorted in one of two orders (protocol/auth.md 7). They differ only
// for metadata names, and a server cannot know which one its client uses.

// byteOrder compares names, which may be in any case, as lower-case bytes.
func byteOrder(a, b string) int {
	for i := range min(len(a), len(b)) {
		if x, y := lower(a[i]), lower(b[i]); x != y {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(a), len(b))
}

// cultureOrder compares names as the real service does, by the culture-sensitive
// order of its platform: hyphens and apostrophes do not count at first. Where
// that leaves two names equal, the one whose first differing hyphen comes later
// sorts first.
func cultureOrder(a, b string) int {
	for i, j := 0, 0; ; i, j = i+1, j+1 {
		for i < len(a) && hyphenWeight(a[i]) > 0 {
			i++
		}
		for j < len(b) && hyphenWeight(b[j]) > 0 {
			j++
		}
		if i == len(a) || j == len(b) {
			if c := cmp.Compare(len(a)-i, len(b)-j); c != 0 {
				return c
			}
			break
		}
		if c := cmp.Compare(cultureWeight(a[i]), cultureWeight(b[j])); c != 0 {
			return c
		}
	}
	for i := range min(len(a), len(b)) {
		if c := cmp.Compare(hyphenWeight(a[i]), hyphenWeight(b[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// cultureWeight orders the bytes a header name may hold: the signs in the order
// listed, then digits, then letters without case.
func cultureWeight(c byte) int {
	switch c = lower(c); {
	case 'a' <= c && c <= 'z':
		return 2<<8 | int(c)
	case '0' <= c && c <= '9':
		return 1<<8 | int(c)
	}
	return strings.IndexByte("!#$%&*.^_`|~+", c)
}

func hyphenWeight(c byte) int {
	switch c {
	case '\'':
		return 1
	case '-':
		return 2
	}
	return 0
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
