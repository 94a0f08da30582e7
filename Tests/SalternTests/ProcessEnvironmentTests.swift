import Foundation
import Testing

@testable import CommandLineKit

@Suite struct ProcessEnvironmentTests {
    @Test func `a variable is what stands between the first sign and the end, whatever that is`() {
        let entries = ["A=1", "B==2", "C=", "D=\u{301}x", "E=\u{200d}", "no sign", "A=2", "F=a\u{301}=b"]
        let environment = ProcessEnvironment(entries.map { Array($0.utf8) })
        let expected = ["A": "1", "B": "=2", "C": "", "D": "\u{301}x", "E": "\u{200d}", "F": "a\u{301}=b"]
        #expect(environment.variables.count == expected.count)
        for (name, value) in expected {
            #expect(environment.variables[name].map { Array($0.utf8) } == Array(value.utf8), "\(name)")
        }
        #expect(environment.unreadable.isEmpty)
    }

    @Test func `what is no UTF-8 is named`() {
        let environment = ProcessEnvironment([Array("SALTERN_X=org".utf8) + [0xff], Array("Y=1".utf8)])
        #expect(environment.unreadable == ["SALTERN_X"])
        #expect(environment.variables["Y"] == "1")
    }

    @Test func `the process has its own`() {
        #expect(ProcessEnvironment.process().variables["PATH"]?.isEmpty == false)
    }

    @Test func `no command goes by a setting that is no UTF-8`() async {
        let tool = CommandLineTool("tool", purpose: "", notes: "", commands: [Nothing.self])
        var console = Console(environment: [:], output: .nullDevice, error: .nullDevice)
        console.unreadableVariables = ["SALTERN_SALT_PREFIX"]
        #expect(await tool.run(["nothing"], console: console) == 1)
        console.unreadableVariables = ["LC_ALL"]
        #expect(await tool.run(["nothing"], console: console) == 0)
    }
}

private struct Nothing: Command {
    static let words = ["nothing"]
    static let summary = ""
    static let example = ""
    static let help = ""

    init(_ arguments: inout Arguments) {}

    func run(_ console: Console) async throws {}
}
