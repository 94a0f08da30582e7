import CommandLineKit
import HTTPCore
import SalternServer

struct ListStatements: Command {
    static let words = ["statements"]
    static let summary = "print every SQL statement of the server as JSON lines"
    static let usage = [""]
    static let example = "saltern statements"
    static let help = """
        For benchmarks and reviews. Each line is an object with the members name and
        sql.
        """

    init(_ arguments: inout Arguments) {}

    func run(_ console: Console) async throws {
        for statement in Application.statements {
            console.printJSON { writer in
                writer.member("name", statement.name)
                writer.member("sql", statement.sql)
            }
        }
    }
}
