// A Go program on files; with -tags cgo or not, Go calls the kernel itself, so on managed files it must fail.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "stdin" {
		data, err := io.ReadAll(os.Stdin)
		if err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		fmt.Println(len(data))
		return
	}
	data, err := os.ReadFile("a")
	if err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	fmt.Println(len(data))
	if err := os.WriteFile("a", append(data, "more"...), 0o644); err != nil {
		fmt.Println(err)
		os.Exit(4)
	}
}
