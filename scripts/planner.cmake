# How CMake compiles the planner behind the extra `textworld` for the tests' virtual environment: seven source files at
# once, since most of the time goes to the headers that they share; with few optimisations and no debugging information.
# It takes less than half of the CPU then. With more files at once two of them would define functions of one name.
# The files' static objects have names of their own only in a file, so they are numbered.
set(CMAKE_UNITY_BUILD ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 7)
string(CONCAT PLANNER_NAMES
    "'-DJOINED_(name,number)=name##number' '-DJOINED(name,number)=JOINED_(name,number)' "
    "'-D_plugin=JOINED(_plugin,__COUNTER__)' '-D_type_plugin=JOINED(_type_plugin,__COUNTER__)'")
set(CMAKE_CXX_COMPILE_OBJECT
    "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> ${PLANNER_NAMES} -O1 -g0 -w -o <OBJECT> -c <SOURCE>")
