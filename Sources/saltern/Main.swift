import Glibc

/// `saltern`: the server and what an admin needs around it.
@main
struct Main {
    static func main() async {
        // A peer that has gone must not end the process: every write reports it as an error.
        signal(SIGPIPE, SIG_IGN)
        let status = await CommandLineTool.run(Array(CommandLine.arguments.dropFirst()))
        exit(status)
    }
}
