import Postgres
import SalternServer
import Testing
import TransportSecurity

@testable import saltern

@Suite struct BackupExaminationTests {
    @Test(arguments: [
        ("pg_dump (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", 15), ("pg_dump (PostgreSQL) 9.6.24\n", 9),
        ("pg_dump (PostgreSQL) 18beta1\n", 18), ("pg_dump (EnterpriseDB) 17\n", nil), ("", nil),
    ])
    func `pg_dump's reply has its major version`(_ reply: String, _ version: Int?) {
        #expect(DumpProgram.majorVersion(in: reply) == version)
    }

    @Test(
        arguments: [
            (15, 150_004, "fine"), (15, 160_001, "problem"), (15, 170_000, "problem"), (16, 150_004, "fine"),
            (17, 150_004, "warning"), (18, 160_009, "warning"), (17, 170_002, "fine"), (18, 170_002, "fine"),
        ] as [(Int, Int32, String)])
    func `an older pg_dump is a problem, and a pg_restore whose output the server rejects a warning`(
        _ program: Int, _ server: Int32, _ severity: String
    ) {
        let finding = BackupExamination.judgeProgram(program, server: server)
        #expect(finding.severity.rawValue == severity, "\(finding.text)")
        if severity != "fine" { #expect(finding.text.contains("postgresql-client-\(server / 10_000)")) }
    }

    @Test func `a backup of more than two days ago is a warning, and so is none unless the installation is new`() {
        let now = Timestamp(microsecondsSince2000: 800_000_000_000_000)
        func severity(_ last: Duration?, _ installed: Duration?) -> String {
            let times = BackupTimes(now: now, last: last.map { now - $0 }, installed: installed.map { now - $0 })
            return BackupExamination.judge(times).severity.rawValue
        }
        let day = 86_400
        #expect(severity(.seconds(2 * day - 1), .seconds(900 * day)) == "fine")
        #expect(severity(.seconds(2 * day), .seconds(900 * day)) == "warning")
        #expect(severity(.seconds(-5), .seconds(900 * day)) == "fine")
        #expect(severity(nil, nil) == "fine")
        #expect(severity(nil, .seconds(2 * day - 1)) == "fine")
        #expect(severity(nil, .seconds(2 * day)) == "warning")
    }
}
