// Command oracle evaluates expressions with Kubernetes' own CEL.
//
// Standard input carries one request per line, standard output one reply per line, in the same order; both are JSON, see
// request.go and reply.go. A request is compiled as kube-apiserver compiles an expression of a stored admission policy, and
// evaluated on each of its objects.
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
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func serve(input io.Reader, output io.Writer) error {
	reader := bufio.NewReaderSize(input, 1<<16)
	writer := bufio.NewWriterSize(output, 1<<16)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	compilers := newCompilers()
	for {
		line, err := readLine(reader)
		if len(bytes.TrimSpace(line)) > 0 {
			if err := encoder.Encode(answer(line, compilers)); err != nil {
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

// answer never fails: the error of a request is its reply.
func answer(line []byte, compilers *compilers) (reply Reply) {
	asked, err := readRequest(line)
	reply.ID = asked.ID
	defer func() {
		if trouble := recover(); trouble != nil {
			reply = Reply{ID: asked.ID, Panic: fmt.Sprint(trouble)}
		}
	}()
	if err != nil {
		reply.Unreadable = err.Error()
		return reply
	}
	compiler, err := compilers.compilerFor(asked)
	if err != nil {
		reply.Unreadable = err.Error()
		return reply
	}
	return compiler.replyTo(asked)
}
