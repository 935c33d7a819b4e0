//go:build !linux

package extent

import "errors"

// Only Linux has O_DIRECT in a form that was tried.
const osReader = false

func readDirect(string, []byte, int64) (int, error) { return 0, errors.ErrUnsupported }

func mapBytes(int) ([]byte, bool) { return nil, false }

func unmapBytes([]byte) {}
