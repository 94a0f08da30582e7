import CommandLineKit
import Foundation
import Postgres

/// A program of PostgreSQL's, such as `pg_dump`, that runs until it ends or somebody wishes that it did.
struct DatabaseProgram {
    let name: String
    let console: Console
    /// What it is told beside the caller's variables: secrets, which must not be among its words.
    private var environment: [String: String]

    /// The last lines that it said are enough to know why it failed.
    private static let rememberedLines = 5

    init(_ name: String, _ console: Console, password: String? = nil, environment: [String: String] = [:]) {
        self.name = name
        self.console = console
        self.environment = console.environment.merging(environment) { _, new in new }
        // Its messages are read.
        self.environment["LC_ALL"] = "C"
        if let password { self.environment["PGPASSWORD"] = password }
    }

    /// Runs it.
    /// - Parameters:
    ///   - input: Its standard input.
    ///   - line: Is told each line of its standard error.
    /// - Returns: Its standard output.
    @discardableResult
    func run(_ words: [String], input: String = "", line: (String) -> Void = { _ in }) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [name] + words
        process.environment = environment
        let spoken = try TemporaryFile(contents: "")
        process.standardInput = try TemporaryFile(contents: input).handle
        process.standardOutput = spoken.handle
        let complaints = Pipe()
        process.standardError = complaints
        let interruption = Interruption { [process] _ in process.terminate() }
        try process.run()
        var last: [String] = []
        for text in Lines(of: complaints.fileHandleForReading) {
            line(text)
            last = (last + [text]).suffix(Self.rememberedLines)
        }
        process.waitUntilExit()
        if interruption.wish.isThere { throw CommandFailure("ended by a signal") }
        guard process.terminationStatus == 0 else {
            if process.terminationStatus == 127 {
                throw CommandFailure("\(name) is not there; in Debian it is in the package postgresql-client")
            }
            throw CommandFailure(last.isEmpty ? ["\(name) ended with \(process.terminationStatus)"] : last)
        }
        return try spoken.contents()
    }

    /// A file without a name: as long as it has to be, which a pipe that nobody reads is not.
    private struct TemporaryFile {
        let handle: FileHandle

        init(contents: String) throws {
            guard let file = tmpfile() else { throw CommandFailure("there is no room for temporary files") }
            handle = FileHandle(fileDescriptor: dup(fileno(file)), closeOnDealloc: true)
            fclose(file)
            try handle.write(contentsOf: Data(contents.utf8))
            try handle.seek(toOffset: 0)
        }

        func contents() throws -> String {
            try handle.seek(toOffset: 0)
            return String(decoding: try handle.readToEnd() ?? Data(), as: UTF8.self)
        }
    }

    /// What comes through a pipe, a line at a time, until everybody has closed it.
    private struct Lines: Sequence, IteratorProtocol {
        private let handle: FileHandle
        private var pending: [UInt8] = []
        private var isOver = false

        init(of handle: FileHandle) { self.handle = handle }

        mutating func next() -> String? {
            while true {
                if let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
                    defer { pending.removeSubrange(...end) }
                    return String(decoding: pending[..<end], as: UTF8.self)
                }
                if isOver {
                    defer { pending = [] }
                    return pending.isEmpty ? nil : String(decoding: pending, as: UTF8.self)
                }
                let more = handle.availableData
                isOver = more.isEmpty
                pending += more
            }
        }
    }
}

extension ProgressBar {
    /// Counts a table when a line of `pg_dump --verbose` or `pg_restore --verbose` begins one.
    mutating func follow(_ line: String, _ done: inout Int, of total: Int) {
        guard line.contains("dumping contents of table") || line.contains("processing data for table") else { return }
        let table = line.split(separator: "\"").dropFirst().first.map(String.init) ?? ""
        show(done, of: total, note: "now \(table.replacingOccurrences(of: "saltern.", with: ""))")
        done += 1
    }
}
