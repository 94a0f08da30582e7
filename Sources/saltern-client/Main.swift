import CommandLineKit
import Foundation

/// `saltern-client`: a command for the client kit.
@main
struct Main {
    /// Not `async`: the main thread only waits.
    static func main() {
        let words = ProcessArguments.words
        // This memory contains passwords and keys, so core dumps must not be written. With a limit of 0 Linux would
        // still pass one to a program that takes dumps (core(5), `core_pattern`). With 1, too little for any file, it
        // does neither.
        var none = rlimit(rlim_cur: 1, rlim_max: 1)
        #if canImport(Glibc)
            setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        #else
            setrlimit(RLIMIT_CORE, &none)
        #endif
        // libcurl would write the keys of its connections to this file.
        unsetenv("SSLKEYLOGFILE")
        StandardDescriptors.occupy()
        // A closed output must not end the process during an operation.
        signal(SIGPIPE, SIG_IGN)
        // Output has no buffer. `exit` would run clean-up functions of libraries (OpenSSL, C++) in parallel to threads
        // that still free their memory. One of two thousand successful commands crashed in this way.
        Task.detached { _exit(await run(words)) }
        while true { pause() }
    }

    /// Runs a command. The first Ctrl-C stops it without loss, the second ends the process.
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
