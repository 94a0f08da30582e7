import CommandLineKit
import Glibc

/// `saltern`: the server and its administrative commands.
@main
struct Main {
    /// Not `async`: an async `main` unblocks every signal in the main thread while it waits, so no signal could be
    /// kept.
    static func main() {
        StandardDescriptors.occupy()
        let words = ProcessArguments.words
        // Before any other thread, because threads inherit it.
        if words.first == Serve.words.first { ServerSignals.block() }
        ProcessLimits.forbidDumps()
        // A peer that has gone must not end the process. Every write reports it as an error.
        signal(SIGPIPE, SIG_IGN)
        // Output has no buffer. `exit` would run clean-up of libraries (OpenSSL, C++) beside threads that still free
        // their memory: one of two thousand successful commands crashed.
        Task.detached { _exit(await CommandLineTool.saltern.run(words)) }
        while true { pause() }
    }
}
