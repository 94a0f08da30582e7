import CommandLineKit
import Glibc

/// `saltern`: the server and what an admin needs around it.
@main
struct Main {
    /// Not `async`: the main thread of an async `main` unblocks every signal while it waits, so that none could be kept for
    /// whoever fetches them.
    static func main() {
        StandardDescriptors.occupy()
        let words = ProcessArguments.words
        // Before there is any other thread: they all inherit it.
        if words.first == Serve.words.first { ServerSignals.block() }
        ProcessLimits.forbidDumps()
        // A peer that has gone must not end the process: every write reports it as an error.
        signal(SIGPIPE, SIG_IGN)
        // Output has no buffer. `exit` would run what libraries do at the end (OpenSSL, C++) beside threads that still free
        // what is theirs: of two thousand commands that had succeeded one crashed.
        Task.detached { _exit(await CommandLineTool.saltern.run(words)) }
        while true { pause() }
    }
}
