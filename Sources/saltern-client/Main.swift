import CommandLineKit
import Foundation

/// `saltern-client`: the client kit for people and scripts.
@main
struct Main {
    /// Not `async`: the main thread has nothing to do but to be there.
    static func main() {
        let words = ProcessArguments.words
        // Passwords and keys are in this memory: no copy of it on a disk. With a limit of 0 Linux would still hand it to a
        // program that takes dumps (core(5), `core_pattern`); with 1, too little for any file, it does neither.
        var none = rlimit(rlim_cur: 1, rlim_max: 1)
        #if canImport(Glibc)
            setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        #else
            setrlimit(RLIMIT_CORE, &none)
        #endif
        // libcurl would write what opens the connections to this file.
        unsetenv("SSLKEYLOGFILE")
        StandardDescriptors.occupy()
        // A reader that has gone must not end the process in the middle of something.
        signal(SIGPIPE, SIG_IGN)
        // Output has no buffer. `exit` would run what libraries do at the end (OpenSSL, C++) beside threads that still free
        // what is theirs: of two thousand commands that had succeeded one crashed.
        Task.detached { _exit(await run(words)) }
        while true { pause() }
    }

    /// Runs a command. The first Ctrl-C lets it stop where nothing is lost, the second ends the process.
    private static func run(_ words: [String]) async -> Int32 {
        let (signals, continuation) = AsyncStream.makeStream(of: Int.self)
        let interruption = Interruption { count in
            if count > 1 { _exit(ExitStatus.interrupted) }
            continuation.yield(count)
        }
        var console = Console.process()
        console.wish = interruption.wish
        let task = Task { [console] in await CommandLineTool.client.run(words, console: console) }
        let cancelling = Task { for await _ in signals { task.cancel() } }
        defer { cancelling.cancel() }
        let status = await task.value
        withExtendedLifetime(interruption) {}
        return status
    }
}
