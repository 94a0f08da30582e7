@testable import Postgres
