// Command kyverno evaluates with Kyverno's own compiler, autogen, matcher and engine, and prints its declarations.
//
//	kyverno declarations   prints the CEL environments of ValidatingPolicy and NamespacedValidatingPolicy, see declarations.go
//	kyverno policies       evaluates policies on requests, see policies.go
//	kyverno expressions    evaluates expressions in the environment of a policy, see expressions.go
//	kyverno webhooks       registers the webhooks of policies, and answers them, see webhooks.go
//
// All but the first read one request per line from standard input and write one reply per line to standard output, in the same
// order; all of them are JSON. One program is linked with one release of Kyverno: its build tag is kyverno1.N, its requirements
// are in releases/v1.N.mod.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	_ "time/tzdata" // time zones in expressions must not depend on the machine
)

const longestLine = 64 << 20

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kyverno:", err)
		os.Exit(1)
	}
}

func run(arguments []string, input io.Reader, output io.Writer) error {
	if len(arguments) != 1 {
		return fmt.Errorf("usage: kyverno declarations | policies | expressions | webhooks")
	}
	switch arguments[0] {
	case "declarations":
		return printDeclarations(output)
	case "policies":
		return serve(input, output, answerPolicies)
	case "expressions":
		return serve(input, output, newExpressions().answer)
	case "webhooks":
		return serve(input, output, newWebhooks().answer)
	}
	return fmt.Errorf("unknown command %q", arguments[0])
}

// serve answers each line; the error or the panic of a request is its reply.
func serve(input io.Reader, output io.Writer, answer func(line []byte) any) error {
	reader := bufio.NewReaderSize(input, 1<<16)
	writer := bufio.NewWriterSize(output, 1<<16)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, err := readLine(reader)
		if len(bytes.TrimSpace(line)) > 0 {
			if err := encoder.Encode(recovered(line, answer)); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return writer.Flush()
		}
		if err != nil {
			return err
		}
		// Flush only when no further request is in the buffer.
		if reader.Buffered() == 0 {
			if err := writer.Flush(); err != nil {
				return err
			}
		}
	}
}

func recovered(line []byte, answer func(line []byte) any) (reply any) {
	defer func() {
		if trouble := recover(); trouble != nil {
			reply = map[string]string{"panic": fmt.Sprint(trouble)}
		}
	}()
	return answer(line)
}

func readLine(reader *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := reader.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > longestLine {
			return nil, fmt.Errorf("a request is longer than %d bytes", longestLine)
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}
