import Foundation

/// A program from outside that judges what this code made.
enum Tool {
    struct Outcome {
        let status: Int32
        let output: String
    }

    /// Runs a program to its end and returns its status, and its output and errors together.
    static func run(_ name: String, _ arguments: [String], input: String = "") throws -> Outcome {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [name] + arguments
        let output = Pipe()
        let inputPipe = Pipe()
        process.standardInput = inputPipe
        process.standardOutput = output
        process.standardError = output
        try process.run()
        try inputPipe.fileHandleForWriting.write(contentsOf: Data(input.utf8))
        try inputPipe.fileHandleForWriting.close()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return Outcome(status: process.terminationStatus, output: text)
    }
}
